import type { ResourceObject } from '../../api/resource.ts'
import type { RoutedKind } from '../../api/served-kind.ts'
import { isJsonObject, parseJson } from '../../base/json.ts'
import { labelValue, qualifiedName } from '../../pod/validation/name-rules.ts'
import { ApiError, invalidMetaOptions } from '../requests/api-error.ts'
import type { OptionFault } from '../requests/api-error.ts'
import { booleanParam, integerParam } from '../requests/route.ts'

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
interface Continuation {
  readonly revision: number
  readonly offset: number
}

export function readListOptions(
  query: URLSearchParams,
  kind: RoutedKind,
  namespace: string | undefined,
): ListOptions {
  const options = readOptions(query, kind, namespace)
  const { match } = options
  const text = query.get('resourceVersion') ?? ''
  const isUnversioned = match !== undefined && text === ''
  refuse([
    ...matchProblems(query),
    ...forbidden(isUnversioned, 'resourceVersionMatch is forbidden unless resourceVersion is provided'),
    ...forbidden(
      match === 'Exact' && text === '0',
      'resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
    ),
    ...forbidden(
      query.has('sendInitialEvents'),
      'sendInitialEvents is forbidden for list',
      'sendInitialEvents',
    ),
  ])
  if (options.continue !== undefined && options.revision !== undefined)
    throw new ApiError(400, 'specifying resource version is not allowed when using continue')
  return options
}

export function readWatchOptions(
  query: URLSearchParams,
  kind: RoutedKind,
  namespace: string | undefined,
): WatchOptions {
  const options = readOptions(query, kind, namespace)
  const { match } = options
  const hasInitial = query.has('sendInitialEvents')
  const sendInitialEvents = hasInitial ? booleanParam(query, 'sendInitialEvents') : undefined
  refuse([
    ...matchProblems(query),
    ...forbidden(
      hasInitial && match !== 'NotOlderThan',
      'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan',
    ),
    ...forbidden(
      !hasInitial && match !== undefined,
      'resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided',
    ),
    ...(match === 'Exact' ? [notSupported('"Exact": supported values: "NotOlderThan"')] : []),
  ])
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

/** The checks that lists and watches share (`pkg/apis/meta/internalversion/validation/validation.go`, 1.36). */
function matchProblems(query: URLSearchParams): readonly OptionFault[] {
  const match = query.get('resourceVersionMatch') ?? ''
  const isContinued = match !== '' && Boolean(query.get('continue'))
  const values = `${JSON.stringify(match)}: supported values: "Exact", "NotOlderThan", ""`
  return [
    ...forbidden(isContinued, 'resourceVersionMatch is forbidden when continue is provided'),
    ...(['', 'Exact', 'NotOlderThan'].includes(match) ? [] : [notSupported(values)]),
  ]
}

function forbidden(isSo: boolean, what: string, field = 'resourceVersionMatch'): readonly OptionFault[] {
  return isSo ? [{ field, reason: 'FieldValueForbidden', message: `Forbidden: ${what}` }] : []
}

function notSupported(what: string): OptionFault {
  const message = `Unsupported value: ${what}`
  return { field: 'resourceVersionMatch', reason: 'FieldValueNotSupported', message }
}

function refuse(problems: readonly OptionFault[]): void {
  if (problems.length > 0) throw invalidMetaOptions('ListOptions', problems)
}

type Labels = Readonly<Record<string, string>>

export type LabelSelector = (labels: Labels) => boolean

const operators = ['=', '==', '!=', 'in', 'notin', '<', '>'] as const

interface Token {
  readonly kind: 'word' | 'symbol' | 'end'
  readonly text: string
}

/**
 * Parses `a=b, a!=b, a, !a, a in (x,y), a notin (x), a>1, a<1`, all of which must hold; an empty text selects everything
 * (`k8s.io/apimachinery/pkg/labels/selector.go`, 1.36).
 * @throws ApiError BadRequest
 */
export function parseLabelSelector(text: string): LabelSelector {
  const tokens = new Tokens(text)
  const requirements: LabelSelector[] = []
  const first = tokens.peek()
  if (first.kind === 'symbol' && first.text === ',')
    throw invalid(`found ',', expected: !, identifier, or 'end of string'`)
  while (tokens.peek().kind !== 'end') {
    requirements.push(parseRequirement(tokens))
    const after = tokens.next()
    if (after.kind === 'end') break
    if (after.text !== ',' || after.kind !== 'symbol')
      throw invalid(`found '${after.text}', expected: ',' or 'end of string'`)
    if (tokens.peek().kind === 'end') throw invalid("found '', expected: identifier after ','")
  }
  return (labels) => requirements.every((isMet) => isMet(labels))
}

function parseRequirement(tokens: Tokens): LabelSelector {
  const isNegated = tokens.takeSymbol('!')
  const key = tokens.next()
  if (key.kind !== 'word') throw unexpected(key, '!, identifier')
  const [wrongKey] = qualifiedName(key.text)
  if (wrongKey !== undefined) throw unmet(`key: Invalid value: ${JSON.stringify(key.text)}: ${wrongKey}`)
  const has = (labels: Labels): boolean => Object.hasOwn(labels, key.text)
  if (isNegated) return (labels) => !has(labels)
  const after = tokens.peek()
  if (after.kind === 'end' || (after.kind === 'symbol' && after.text === ',')) return has
  tokens.next()
  const operator = operators.find((each) => each === after.text)
  if (operator === undefined) throw unexpected(after, operators.join(', '))
  const values = operator === 'in' || operator === 'notin' ? parseValues(tokens) : [parseValue(tokens)]
  for (const [index, value] of values.entries()) {
    const [wrong] = labelValue(value)
    if (wrong !== undefined)
      throw unmet(`values[${index}][${key.text}]: Invalid value: ${JSON.stringify(value)}: ${wrong}`)
  }
  return requirementOf(key.text, operator, values)
}

function requirementOf(
  key: string,
  operator: (typeof operators)[number],
  values: readonly string[],
): LabelSelector {
  const valueOf = (labels: Labels): string | undefined =>
    Object.hasOwn(labels, key) ? labels[key] : undefined
  const among = new Set(values)
  const isAmong = (labels: Labels): boolean => among.has(valueOf(labels) ?? '') && Object.hasOwn(labels, key)
  switch (operator) {
    case '=':
    case '==':
    case 'in':
      return isAmong
    case '!=':
    case 'notin':
      return (labels) => !isAmong(labels)
    case '<':
    case '>': {
      const [limit = ''] = values
      if (!isInteger(limit))
        throw unmet(
          `values[0]: Invalid value: ${JSON.stringify(limit)}: for 'Gt', 'Lt' operators, the value must be an integer`,
        )
      return (labels) => {
        const value = valueOf(labels) ?? ''
        if (!isInteger(value)) return false
        return operator === '<' ? BigInt(value) < BigInt(limit) : BigInt(value) > BigInt(limit)
      }
    }
  }
}

function isInteger(text: string): boolean {
  return /^-?\d{1,19}$/u.test(text)
}

/** The value after `=` and similar operators; nothing means an empty value. */
function parseValue(tokens: Tokens): string {
  const token = tokens.peek()
  if (token.kind === 'end' || (token.kind === 'symbol' && token.text === ',')) return ''
  if (token.kind !== 'word') throw unexpected(token, 'identifier')
  return tokens.next().text
}

/** The values of `in` and `notin`: `(x,y)`, where an empty place is an empty value. */
function parseValues(tokens: Tokens): readonly string[] {
  const open = tokens.next()
  if (open.text !== '(') throw unmet(`found '${open.text}' expected: '('`)
  const values: string[] = []
  for (;;) {
    const token = tokens.peek()
    values.push(token.kind === 'word' ? tokens.next().text : '')
    const after = tokens.next()
    if (after.kind === 'symbol' && after.text === ')') return values
    if (after.kind !== 'symbol' || after.text !== ',') throw unexpected(after, "',' or ')'")
  }
}

class Tokens {
  readonly #tokens: readonly Token[]
  #at = 0

  constructor(text: string) {
    const found = text.matchAll(/\s+|(?<symbol>==|!=|[=!(),<>])|(?<word>[^\s=!(),<>]+)/gu)
    this.#tokens = [...found].flatMap(({ groups }): Token[] => {
      if (groups?.['symbol'] !== undefined) return [{ kind: 'symbol', text: groups['symbol'] }]
      return groups?.['word'] === undefined ? [] : [{ kind: 'word', text: groups['word'] }]
    })
  }

  peek(): Token {
    return this.#tokens[this.#at] ?? { kind: 'end', text: '' }
  }

  next(): Token {
    const token = this.peek()
    this.#at += 1
    return token
  }

  takeSymbol(text: string): boolean {
    const token = this.peek()
    if (token.kind !== 'symbol' || token.text !== text) return false
    this.#at += 1
    return true
  }
}

function unexpected(token: Token, expected: string): ApiError {
  return unmet(`found '${token.text}', expected: ${expected}`)
}

function unmet(what: string): ApiError {
  return invalid(`unable to parse requirement: ${what}`)
}

function invalid(what: string): ApiError {
  return new ApiError(400, what)
}

type FieldSelector = (object: ResourceObject) => boolean

/**
 * Parses `field=value, field==value, field!=value`, all of which must hold; `\` escapes `,`, `=` and itself in a value
 * (`k8s.io/apimachinery/pkg/fields/selector.go`, 1.36). The kind defines the fields.
 * @throws ApiError BadRequest
 */
function parseFieldSelector(text: string, kind: RoutedKind): FieldSelector {
  const terms = (text.match(/(?:\\.|[^,\\]|\\$)+/gsu) ?? []).map((term) => parseTerm(term, text, kind))
  return (object) => terms.every((isMet) => isMet(object))
}

function parseTerm(term: string, text: string, kind: RoutedKind): FieldSelector {
  const [, field = '', operator, escaped = ''] = /^(.*?)(!=|==|=)(.*)$/su.exec(term) ?? []
  if (operator === undefined) {
    throw new ApiError(400, `invalid selector: '${text}'; can't understand '${term}'`)
  }
  const value = unescape(escaped)
  const read = fieldOf(kind, field)
  if (read === undefined) throw new ApiError(400, `field label not supported: ${field}`)
  return (object) => (read(object) === value) === (operator !== '!=')
}

function fieldOf(kind: RoutedKind, field: string): ((object: ResourceObject) => string) | undefined {
  if (field === 'metadata.name') return ({ metadata }) => metadata.name
  if (field === 'metadata.namespace') return ({ metadata }) => metadata.namespace ?? ''
  return Object.hasOwn(kind.fields, field) ? kind.fields[field] : undefined
}

function unescape(text: string): string {
  return text.replaceAll(/\\(?<escaped>.?)|[,=]/gsu, (found, escaped?: string) => {
    if (escaped === undefined)
      throw new ApiError(400, `invalid field selector: unescaped character in value: ${found}`)
    if (!['\\', ',', '='].includes(escaped))
      throw new ApiError(400, `invalid field selector: invalid escape sequence: ${found}`)
    return escaped
  })
}
