import { toStatusObject } from './api-error.ts'
import { jsonResponse } from './api-request.ts'
import type { ApiResponse } from './api-request.ts'

/** The response for an error; clients retry by themselves where it has a Retry-After. */
export function statusResponse(error: unknown): ApiResponse & { readonly body: string } {
  const status = toStatusObject(error)
  const { retryAfterSeconds } = status.details ?? {}
  const response = jsonResponse(status, status.code)
  if (retryAfterSeconds === undefined) return response
  return { ...response, headers: { 'retry-after': String(retryAfterSeconds) } }
}
