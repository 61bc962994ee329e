import { toStatusObject } from './api-error.ts'
import { jsonResponse } from './api-request.ts'
import type { ApiResponse } from './api-request.ts'

/** The answer to a request for which an error was thrown; clients try again by themselves where it says after which time. */
export function statusResponse(error: unknown): ApiResponse & { readonly body: string } {
  const status = toStatusObject(error)
  const { retryAfterSeconds } = status.details ?? {}
  const response = jsonResponse(status, status.code)
  if (retryAfterSeconds === undefined) return response
  return { ...response, headers: { 'retry-after': String(retryAfterSeconds) } }
}
