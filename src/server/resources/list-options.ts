import type { RoutedKind } from '../../api/served-kind.ts'
import type { ResourceObject } from '../../api/resource.ts'
import { isJsonObject } from '../../base/json.ts'
import { ApiError } from '../requests/api-error.ts'
import { invalidMetaOptions } from '../requests/invalid-options.ts'
import type { OptionFault } from '../requests/invalid-options.ts'
import { booleanParam, integerParam } from '../requests/query.ts'
import { parseFieldSelector } from './field-selector.ts'
import { parseLabelSelector } from './label-selector.ts'

/** Which objects of a kind are requested, and at which revision: meta/v1 ListOptions. */
export interface ListOptions {
  readonly accepts: (object: ResourceObject) => boolean
  /** Whether a selector, beside the namespace, may exclude objects. */
  readonly hasSelector: boolean
  /** The limit; undefined for all. */
  readonly limit: number | undefined
  /** Where the previous chunk ended. */
  readonly continue: Continuation | undefined
  /** Undefined: any; a watch then begins with the existing objects. */
  readonly revision: number | undefined
  readonly match: 'Exact' | 'NotOlderThan' | undefined
}

export interface WatchOptions extends ListOptions {
  readonly bookmarks: boolean
  /** Undefined: implied by the revision. */
  readonly sendInitialEvents: boolean | undefined
  /** Undefined: none is asked for. */
  readonly timeoutSeconds: number | undefined
}

/** A position in the list at a revision. */
export interface Continuation {
  readonly revision: number
  readonly offset: number
}

/** Reads the query of a list. Throws ApiError. */
export function readListOptions(
  query: URLSearchParams,
  kind: RoutedKind,
  namespace: string | undefined,
): ListOptions {
  const options = readOptions(query, kind, namespace)
  const problems: OptionFault[] = matchProblems(query)
  const { match } = options
  const text = query.get('resourceVersion') ?? ''
  if (match !== undefined && text === '')
    problems.push(
      forbidden(
        'resourceVersionMatch',
        'resourceVersionMatch is forbidden unless resourceVersion is provided',
      ),
    )
  if (match === 'Exact' && text === '0')
    problems.push(
      forbidden('resourceVersionMatch', 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'),
    )
  if (query.has('sendInitialEvents'))
    problems.push(forbidden('sendInitialEvents', 'sendInitialEvents is forbidden for list'))
  refuse(problems)
  if (options.continue !== undefined && options.revision !== undefined)
    throw new ApiError(400, 'specifying resource version is not allowed when using continue')
  return options
}

/** Reads the query of a watch. Throws ApiError. */
export function readWatchOptions(
  query: URLSearchParams,
  kind: RoutedKind,
  namespace: string | undefined,
): WatchOptions {
  const options = readOptions(query, kind, namespace)
  const sendInitialEvents = query.has('sendInitialEvents')
    ? booleanParam(query, 'sendInitialEvents')
    : undefined
  const problems: OptionFault[] = matchProblems(query)
  if (sendInitialEvents !== undefined && options.match !== 'NotOlderThan')
    problems.push(
      forbidden(
        'resourceVersionMatch',
        'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan',
      ),
    )
  if (sendInitialEvents === undefined && options.match !== undefined)
    problems.push(
      forbidden(
        'resourceVersionMatch',
        'resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided',
      ),
    )
  if (options.match === 'Exact')
    problems.push({
      field: 'resourceVersionMatch',
      reason: 'FieldValueNotSupported',
      message: 'Unsupported value: "Exact": supported values: "NotOlderThan"',
    })
  refuse(problems)
  const timeoutSeconds = integerParam(query, 'timeoutSeconds')
  return {
    ...options,
    bookmarks: booleanParam(query, 'allowWatchBookmarks'),
    sendInitialEvents,
    timeoutSeconds: timeoutSeconds === undefined || timeoutSeconds <= 0 ? undefined : timeoutSeconds,
  }
}

/** The `continue` token of the next request. */
export function encodeContinuation({ revision, offset }: Continuation): string {
  return Buffer.from(JSON.stringify({ v: 1, revision, offset })).toString('base64url')
}

function readOptions(query: URLSearchParams, kind: RoutedKind, namespace: string | undefined): ListOptions {
  const labelText = query.get('labelSelector') ?? ''
  const fieldText = query.get('fieldSelector') ?? ''
  const hasLabels = parseLabelSelector(labelText)
  const hasFields = parseFieldSelector(fieldText, kind)
  const limit = integerParam(query, 'limit') ?? 0
  const match = query.get('resourceVersionMatch')
  return {
    accepts: (object) =>
      (namespace === undefined || object.metadata.namespace === namespace) &&
      hasLabels(object.metadata.labels ?? {}) &&
      hasFields(object),
    hasSelector: labelText !== '' || fieldText !== '',
    limit: limit > 0 ? limit : undefined,
    continue: decodeContinuation(query.get('continue') ?? ''),
    revision: readRevision(query.get('resourceVersion') ?? ''),
    match: match === 'Exact' || match === 'NotOlderThan' ? match : undefined,
  }
}

function readRevision(text: string): number | undefined {
  if (text === '' || text === '0') return undefined
  const revision = /^\d{1,16}$/u.test(text) ? Number(text) : Number.NaN
  if (Number.isSafeInteger(revision)) return revision
  throw new ApiError(
    400,
    `resourceVersion: Invalid value: ${JSON.stringify(text)}: must be a resource version that podd gave`,
  )
}

function decodeContinuation(text: string): Continuation | undefined {
  if (text === '') return undefined
  const token = parseJson(Buffer.from(text, 'base64url').toString())
  if (isJsonObject(token)) {
    const { v, revision, offset } = token
    if (v === 1 && isCount(revision) && isCount(offset)) return { revision, offset }
  }
  throw new ApiError(400, 'continue key is not valid')
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The caller reports the error.
    return undefined
  }
}

/** The checks that lists and watches share (`pkg/apis/meta/internalversion/validation/validation.go`, 1.36). */
function matchProblems(query: URLSearchParams): OptionFault[] {
  const match = query.get('resourceVersionMatch') ?? ''
  const problems: OptionFault[] = []
  if (match !== '' && query.get('continue'))
    problems.push(
      forbidden('resourceVersionMatch', 'resourceVersionMatch is forbidden when continue is provided'),
    )
  if (!['', 'Exact', 'NotOlderThan'].includes(match))
    problems.push({
      field: 'resourceVersionMatch',
      reason: 'FieldValueNotSupported',
      message: `Unsupported value: ${JSON.stringify(match)}: supported values: "Exact", "NotOlderThan", ""`,
    })
  return problems
}

function forbidden(field: string, what: string): OptionFault {
  return { field, reason: 'FieldValueForbidden', message: `Forbidden: ${what}` }
}

function refuse(problems: readonly OptionFault[]): void {
  if (problems.length > 0) throw invalidMetaOptions('ListOptions', problems)
}
