import { apiReasons } from '../../api/resource.ts'
import type { ResourceObject } from '../../api/resource.ts'
import type { StatusObject } from '../../api/routes.ts'
import { errorCode, errorMessage, PoddError } from '../../base/errors.ts'
import { nearestName } from '../../base/text.ts'
import type { FaultReason } from '../../pod/schema/issues.ts'

type HttpCode = keyof typeof apiReasons

/** A request that is answered with an error; code `API_<REASON>`. */
export class ApiError extends PoddError {
  readonly httpCode: HttpCode
  readonly reason: string
  readonly details: StatusObject['details']

  /** @param reason instead of the one that goes with the code */
  constructor(
    httpCode: HttpCode,
    message: string,
    hint?: string,
    details?: StatusObject['details'],
    reason: string = apiReasons[httpCode],
  ) {
    super(`API_${apiReasons[httpCode]}`, message, { hint })
    this.httpCode = httpCode
    this.reason = reason
    this.details = details
  }
}

/**
 * `pods "web" not found`, as Kubernetes says it.
 * @param resource with its group, where it isn't the core one: `runtimeclasses.node.k8s.io`
 */
export function notFound(resource: string, name: string, hint?: string): ApiError {
  const [kind = '', ...group] = resource.split('.')
  const details = { name, ...(group.length > 0 && { group: group.join('.') }), kind }
  return new ApiError(404, `${resource} ${JSON.stringify(name)} not found`, hint, details)
}

/** The response for an error that was thrown while a request was handled. */
export function toStatusObject(error: unknown): StatusObject {
  const httpCode = httpCodeOf(error)
  const base = {
    apiVersion: 'v1',
    kind: 'Status',
    metadata: {},
    status: 'Failure',
    message: errorMessage(error),
    reason: error instanceof ApiError ? error.reason : apiReasons[httpCode],
    code: httpCode,
  } as const
  if (!(error instanceof PoddError)) return base
  const isPlain = error instanceof ApiError && error.hint === undefined
  const cause = { reason: error.code, message: error.hint ?? '' }
  const details = error instanceof ApiError ? error.details : undefined
  // An API server has no hints: where podd has none either, the answer is the same.
  if (isPlain) return details === undefined ? base : { ...base, details }
  return { ...base, details: { causes: [cause], ...details } }
}

/** Errors of a temporary state: the runtime is unavailable, or not listed yet. */
const passing: readonly (string | undefined)[] = ['RUNTIME_UNAVAILABLE', 'IMAGES_NOT_KNOWN']

function httpCodeOf(error: unknown): HttpCode {
  if (error instanceof ApiError) return error.httpCode
  return passing.includes(errorCode(error)) ? 503 : 500
}

/** The error for a missing object, with a hint at the same name in another namespace, or at a similar name. */
export function objectNotFound(
  resource: string,
  all: readonly ResourceObject[],
  { namespace, name }: { readonly namespace: string; readonly name: string },
): ApiError {
  const elsewhere = all.find(
    ({ metadata }) => metadata.name === name && (metadata.namespace ?? '') !== namespace,
  )
  if (elsewhere !== undefined) {
    const other = elsewhere.metadata.namespace
    return notFound(resource, name, `There is one in namespace ${other}: -n ${other}`)
  }
  const names = all.flatMap(({ metadata }) =>
    (metadata.namespace ?? '') === namespace ? [metadata.name] : [],
  )
  const near = nearestName(name, names)
  return notFound(resource, name, near === undefined ? undefined : `Did you mean ${near}?`)
}

export interface OptionFault {
  /** Empty: several options together. */
  readonly field: string
  readonly reason: FaultReason
  readonly message: string
}

/** As an API server rejects a request's options (`apimachinery/pkg/api/errors`, NewInvalid, 1.36). */
export function invalidOptions(
  { kind, group, name = '' }: { readonly kind: string; readonly group?: string; readonly name?: string },
  faults: readonly OptionFault[],
): ApiError {
  const texts = [
    ...new Set(faults.map(({ field, message }) => (field === '' ? message : `${field}: ${message}`))),
  ]
  const all = texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(', ')}]`
  const qualified = group === undefined ? kind : `${kind}.${group}`
  return new ApiError(422, `${qualified} ${JSON.stringify(name)} is invalid: ${all}`, undefined, {
    ...(name !== '' && { name }),
    ...(group !== undefined && { group }),
    kind,
    causes: faults.map(({ field, reason, message }) => ({ reason, message, field })),
  })
}

/** Of meta/v1: ListOptions, CreateOptions and their like. */
export function invalidMetaOptions(kind: string, faults: readonly OptionFault[]): ApiError {
  return invalidOptions({ kind, group: 'meta.k8s.io' }, faults)
}
