import { errorCode, errorMessage, mayPass } from '../../base/errors.ts'
import type { Problem } from '../../pod/objects/document.ts'
import { DecodeUnavailable } from '../decode-thread.ts'

/** The first delay before a file is read again; it doubles each time. */
const firstRetryMs = 1000
const longestRetryMs = 30_000

/** Why the system could not read or decode a file, whatever its content. */
export interface ReadFailure {
  readonly reason: string
  /** Whether it may succeed without a change; a permission error doesn't. */
  readonly mayPass: boolean
  /** Monotonic time of the first attempt that failed. */
  readonly sinceMs: number
  /** Monotonic time of the next attempt. */
  readonly retryAtMs: number
  readonly delayMs: number
}

/** How long failing reads delay removals: a shortage of resources is over by then. */
const longestHoldMs = 300_000

/** Whether documents that the file no longer gives must not be removed yet. */
export function holdsRemovals(failure: ReadFailure | undefined, nowMs: number): boolean {
  return failure?.mayPass === true && nowMs - failure.sinceMs < longestHoldMs
}

/** @param before the failure of the attempt before this one */
export function readFailure(error: unknown, before: ReadFailure | undefined, nowMs: number): ReadFailure {
  const delayMs = before === undefined ? firstRetryMs : Math.min(before.delayMs * 2, longestRetryMs)
  const code = errorCode(error)
  return {
    reason:
      error instanceof DecodeUnavailable ? error.message : `cannot be read: ${code ?? errorMessage(error)}`,
    mayPass: error instanceof DecodeUnavailable || mayPass(error),
    sinceMs: before?.sinceMs ?? nowMs,
    retryAtMs: nowMs + delayMs,
    delayMs,
  }
}

export function failureProblem(path: string, { reason }: ReadFailure): Problem {
  return { severity: 'error', place: { path }, message: reason, hint: 'podd retries.' }
}
