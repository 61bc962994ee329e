import { apiReasons } from '../../api/resource.ts'
import type { StatusObject } from '../../api/routes.ts'
import { PoddError, errorCode, errorMessage } from '../../base/errors.ts'

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
