import { errorCode, errorMessage, mayPass } from '../../base/errors.ts'
import type { Problem } from '../../pod/objects/document.ts'
import { DecodeUnavailable } from '../decode-thread.ts'

/** A file is read again after this, then after twice that, and so on. */
const firstRetryMs = 1000
const longestRetryMs = 30_000

/** The system kept a file from being read or decoded, which says nothing about what the file holds. */
export interface ReadFailure {
  readonly reason: string
  /** By itself; a file that podd may not read, say, stays so until somebody changes it. */
  readonly mayPass: boolean
  /** Monotonic time of the first attempt that failed. */
  readonly sinceMs: number
  /** Monotonic time of the next attempt. */
  readonly retryAtMs: number
  readonly delayMs: number
}

/** How long failing reads hold up removals: a shortage of the system is over by then. */
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
