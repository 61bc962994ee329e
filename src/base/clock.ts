import { uptime } from 'node:os'
import { setTimeout as sleepAbortable } from 'node:timers/promises'

/** A timer that can be cancelled; cancelling it twice, or after it fired, has no effect. */
export interface Timer {
  cancel(): void
}

/** The source of all time in podd. Wall time is for people and records, monotonic time for measuring and waiting. */
export interface Clock {
  /** Wall time in milliseconds since the epoch; it may jump. */
  wallMs(): number
  /** Milliseconds since some fixed moment; it never jumps, and stands still while the host is suspended. */
  monotonicMs(): number
  /** Milliseconds since the host was booted; it never jumps, and goes on while the host is suspended. */
  uptimeMs(): number
  /** Calls `fire` once after `delayMs` (at least 0). */
  startTimer(delayMs: number, fire: () => void): Timer
  /** Resolves after `delayMs`; rejects with the signal's reason as soon as it is aborted. */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>
}

/** The wall clock and the one that counts from the host's boot, read together: the second tells when the first was set. */
export interface ClockReading {
  readonly wallMs: number
  readonly uptimeMs: number
}

export function readClocks(clock: Pick<Clock, 'wallMs' | 'uptimeMs'>): ClockReading {
  return { wallMs: clock.wallMs(), uptimeMs: clock.uptimeMs() }
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
  uptimeMs: () => uptime() * 1000,
  startTimer(delayMs, fire) {
    const handle = setTimeout(fire, timeoutMs(delayMs))
    handle.unref()
    return { cancel: () => clearTimeout(handle) }
  },
  sleep: (delayMs, signal) =>
    sleepAbortable(timeoutMs(delayMs), undefined, { signal }).catch(() => {
      throw signal?.reason
    }),
}

/** A signal that is aborted with this reason after `delayMs` (Infinity: never), unless it is disposed of before. */
export function startDeadline(
  clock: Clock,
  delayMs: number,
  reason?: () => Error,
): Disposable & { readonly signal: AbortSignal } {
  const late = new AbortController()
  const timer = delayMs === Infinity ? undefined : clock.startTimer(delayMs, () => late.abort(reason?.()))
  return { signal: late.signal, [Symbol.dispose]: () => timer?.cancel() }
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

/** How long one piece of work may hold the event loop (milliseconds). */
const turnMs = 10

/**
 * The pace of work that would hold the event loop for long: it is divided, and what else is due comes between its parts. By
 * a clock that stands still it isn't.
 */
export class TurnPace {
  readonly #clock: Clock
  #beganMs: number

  constructor(clock: Clock) {
    this.#clock = clock
    this.#beganMs = clock.monotonicMs()
  }

  /** Whether this turn was long enough. */
  get isOver(): boolean {
    return this.#clock.monotonicMs() - this.#beganMs >= turnMs
  }

  /** The turn begins now. */
  begin(): void {
    this.#beganMs = this.#clock.monotonicMs()
  }

  /** Resolves in another turn of the event loop. */
  async next(): Promise<void> {
    await new Promise<void>((resolve) => void setImmediate(resolve))
    this.begin()
  }
}

/** Does the work for each of these, of which there may be tens of thousands: the rest of podd has its turns meanwhile. */
export async function mapInTurns<Item, Result>(
  clock: Clock,
  items: Iterable<Item>,
  work: (item: Item) => Result,
): Promise<Result[]> {
  const pace = new TurnPace(clock)
  const results: Result[] = []
  for (const item of items) {
    if (pace.isOver) await pace.next()
    results.push(work(item))
  }
  return results
}

/**
 * Work that looks at everything there is, and is asked for by each small change: it is done once for all that asks at a time,
 * and where there is so much that it takes its time, it takes at most a fifth of the time. By a clock that stands still it is
 * done at once.
 */
export class PacedWork {
  readonly #clock: Clock
  readonly #work: () => void | Promise<void>
  #isDue = false
  #isAtWork = false
  #hasStopped = false
  /** Monotonic milliseconds. */
  #notBeforeMs = 0

  /** @param work must not throw; one that takes several turns is waited for */
  constructor(clock: Clock, work: () => void | Promise<void>) {
    this.#clock = clock
    this.#work = work
  }

  /** Nothing more is done. */
  stop(): void {
    this.#hasStopped = true
  }

  /** Does the work soon, and not before what runs now has ended. */
  ask(): void {
    if (this.#isDue || this.#hasStopped) return
    this.#isDue = true
    if (!this.#isAtWork) this.#begin()
  }

  #begin(): void {
    const waitMs = this.#notBeforeMs - this.#clock.monotonicMs()
    if (waitMs > 1) this.#clock.startTimer(waitMs, () => void this.#do())
    else queueMicrotask(() => void this.#do())
  }

  async #do(): Promise<void> {
    this.#isDue = false
    if (this.#hasStopped) return
    const beganMs = this.#clock.monotonicMs()
    const work = this.#work()
    if (work !== undefined) {
      this.#isAtWork = true
      await work
      this.#isAtWork = false
    }
    const endedMs = this.#clock.monotonicMs()
    this.#notBeforeMs = endedMs + 4 * (endedMs - beganMs)
    if (this.#isDue && work !== undefined) this.#begin()
  }
}

/**
 * The turns of many workers: each piece of their work begins at once while there is little of it, and else in its turn, so
 * that all together hold the event loop hardly longer than one of them does.
 */
export class SharedTurns {
  readonly #pace: TurnPace
  readonly #waiting: (() => void)[] = []
  #isTurning = false

  constructor(clock: Clock) {
    this.#pace = new TurnPace(clock)
  }

  /** Undefined where the work may begin at once; otherwise it is to wait for this. */
  enter(): Promise<void> | undefined {
    if (!this.#isTurning) void this.#turn()
    if (this.#waiting.length === 0 && !this.#pace.isOver) return undefined
    return new Promise((resolve) => void this.#waiting.push(resolve))
  }

  /** Until nobody waits. Each turn has one piece of work: what follows of that belongs to it. */
  async #turn(): Promise<void> {
    this.#isTurning = true
    this.#pace.begin()
    let at = 0
    do {
      await this.#pace.next()
      this.#waiting[at]?.()
      at += 1
      if (at >= 1000) at -= this.#waiting.splice(0, at).length
    } while (at < this.#waiting.length)
    this.#waiting.length = 0
    this.#isTurning = false
  }
}

/** The last time that RFC 3339 can represent. */
const lastTimeMs = Date.UTC(9999, 11, 31, 23, 59, 59)

/**
 * RFC 3339 in UTC with whole seconds, as Kubernetes writes times; later times than the year 9999 are clamped to its
 * end.
 */
export function formatTime(wallMs: number): string {
  return `${isoTime(Math.min(wallMs, lastTimeMs)).slice(0, 19)}Z`
}

/**
 * `2026-11-26T22:15:00.123Z`, as `toISOString` of Date has it, which loads the names of the host's time zone first: half a
 * mebibyte. Throws RangeError where there is no such time.
 */
export function isoTime(wallMs: number): string {
  const date = new Date(wallMs)
  const year = date.getUTCFullYear()
  if (!(year >= 0 && year <= 9999)) return date.toISOString()
  const padded = (value: number, length = 2): string => String(value).padStart(length, '0')
  const day = `${padded(year, 4)}-${padded(date.getUTCMonth() + 1)}-${padded(date.getUTCDate())}`
  const time = `${padded(date.getUTCHours())}:${padded(date.getUTCMinutes())}:${padded(date.getUTCSeconds())}`
  return `${day}T${time}.${padded(date.getUTCMilliseconds(), 3)}Z`
}
