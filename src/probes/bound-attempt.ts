import type { Clock } from '../base/clock.ts'

export interface AttemptBounds {
  readonly clock: Clock
  /** Undefined: no limit but the signal's. */
  readonly timeoutMs?: number | undefined
  readonly signal?: AbortSignal | undefined
}

export interface Attempt<T> {
  /** Begins; calls `settle` once it knows. Returns a function that releases what it holds, called exactly once at the end. */
  readonly begin: (settle: (value: T) => void) => () => void
  /** The outcome of a timeout. */
  readonly onTimeout: () => T
  /** The outcome of a cancellation. */
  readonly onAbort: () => T
}

/** Runs one attempt until it settles, its time is up or it is cancelled, whichever comes first. */
export function boundAttempt<T>(bounds: AttemptBounds, attempt: Attempt<T>): Promise<T> {
  const { clock, timeoutMs, signal } = bounds
  if (signal?.aborted === true) return Promise.resolve(attempt.onAbort())
  return new Promise((resolve) => {
    let settled = false
    let release: (() => void) | undefined
    const settle = (value: T): void => {
      if (settled) return
      settled = true
      timer?.cancel()
      signal?.removeEventListener('abort', abort)
      release?.()
      resolve(value)
    }
    const abort = (): void => settle(attempt.onAbort())
    const timer =
      timeoutMs === undefined ? undefined : clock.startTimer(timeoutMs, () => settle(attempt.onTimeout()))
    signal?.addEventListener('abort', abort, { once: true })
    release = attempt.begin(settle)
    if (settled) release()
  })
}
