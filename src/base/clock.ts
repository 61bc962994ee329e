/** A timer that can be cancelled; cancelling it twice, or after it fired, has no effect. */
export interface Timer {
  cancel(): void
}

/** The source of all time in podd. Wall time is for people and records, monotonic time for measuring and waiting. */
export interface Clock {
  /** Wall time in milliseconds since the epoch; it may jump. */
  wallMs(): number
  /** Milliseconds since some fixed moment; it never jumps. */
  monotonicMs(): number
  /** Calls `fire` once after `delayMs` (at least 0). */
  startTimer(delayMs: number, fire: () => void): Timer
  /** Resolves after `delayMs`; rejects with the signal's reason as soon as it is aborted. */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>
}

/** setTimeout fires at once beyond this, about 24.8 days. */
const longestTimerMs = 2 ** 31 - 1

/** Rounds up to whole milliseconds: setTimeout drops a fraction, and would fire early. */
function timeoutMs(delayMs: number): number {
  return Math.ceil(Math.min(Math.max(delayMs, 0), longestTimerMs))
}

/** Not by `performance`, which loads Node's other performance APIs. */
function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1000 + nanoseconds / 1e6
}

/** The real clock. `sleep` keeps the process alive; a timer doesn't. */
export const systemClock: Clock = {
  wallMs: () => Date.now(),
  monotonicMs,
  startTimer(delayMs, fire) {
    const handle = setTimeout(fire, timeoutMs(delayMs))
    handle.unref()
    return { cancel: () => clearTimeout(handle) }
  },
  sleep: (delayMs, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted === true) {
        reject(signal.reason)
        return
      }
      const onAbort = (): void => {
        clearTimeout(handle)
        reject(signal?.reason)
      }
      const handle = setTimeout(() => {
        signal?.removeEventListener('abort', onAbort)
        resolve()
      }, timeoutMs(delayMs))
      signal?.addEventListener('abort', onAbort, { once: true })
    }),
}

/** Waits for `delayMs`, or until the signal is aborted. Never rejects: the caller looks at the signal itself. */
export function sleepUnlessAborted(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  // `sleep` rejects for no other reason than the signal.
  return clock.sleep(delayMs, signal).catch(() => undefined)
}

/**
 * Asks each `periodMs` whether something holds, until it does or `timeoutMs` have passed; returns whether it did. For what no
 * event tells of. Rejects with the signal's reason, and with what `holds` throws.
 */
export async function pollUntil(
  clock: Clock,
  holds: () => boolean | Promise<boolean>,
  {
    periodMs,
    timeoutMs: longestMs,
    signal,
  }: { readonly periodMs: number; readonly timeoutMs: number; readonly signal?: AbortSignal | undefined },
): Promise<boolean> {
  const untilMs = clock.monotonicMs() + longestMs
  for (;;) {
    if (await holds()) return true
    if (clock.monotonicMs() >= untilMs) return false
    await clock.sleep(periodMs, signal)
  }
}

/** The last time that RFC 3339 can represent. */
const lastTimeMs = Date.UTC(9999, 11, 31, 23, 59, 59)

/**
 * RFC 3339 in UTC with whole seconds, as Kubernetes writes times; later times than the year 9999 are clamped to its
 * end.
 */
export function formatTime(wallMs: number): string {
  return `${new Date(Math.min(wallMs, lastTimeMs)).toISOString().slice(0, 19)}Z`
}
