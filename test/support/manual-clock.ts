import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Clock, Timer } from '../../src/base/clock.ts'

interface PendingTimer {
  readonly dueMs: number
  readonly order: number
  readonly fire: () => void
}

/**
 * A clock that stands still until a test moves it. Timers fire in the order of their due times (equal
 * ones in the order they were started), and what they set off has settled before the next one fires.
 */
export class ManualClock implements Clock {
  #monotonicMs = 0
  /** How long the host was up when this clock began, and for how long it was suspended since. */
  #uptimeAheadMs = 1_000_000
  #wallMs: number
  #started = 0
  readonly #pending = new Set<PendingTimer>()
  /** By how much timers of more than a millisecond fire early, as those of libuv do, which counts in whole milliseconds. */
  earlyMs = 0

  constructor(startWallMs: number = Date.UTC(2026, 0, 1)) {
    this.#wallMs = startWallMs
  }

  wallMs(): number {
    return this.#wallMs
  }

  monotonicMs(): number {
    return this.#monotonicMs
  }

  uptimeMs(): number {
    return this.#monotonicMs + this.#uptimeAheadMs
  }

  startTimer(delayMs: number, fire: () => void): Timer {
    const waitMs = delayMs > 1 ? delayMs - this.earlyMs : Math.max(delayMs, 0)
    const timer = { dueMs: this.#monotonicMs + waitMs, order: (this.#started += 1), fire }
    this.#pending.add(timer)
    return { cancel: () => void this.#pending.delete(timer) }
  }

  sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted === true) {
        reject(signal.reason)
        return
      }
      const onAbort = (): void => {
        timer.cancel()
        reject(signal?.reason)
      }
      const timer = this.startTimer(delayMs, () => {
        signal?.removeEventListener('abort', onAbort)
        resolve()
      })
      signal?.addEventListener('abort', onAbort, { once: true })
    })
  }

  /** How many timers and sleeps wait. */
  get pendingTimers(): number {
    return this.#pending.size
  }

  /** Milliseconds until the next timer is due; undefined when none waits. */
  get nextTimerMs(): number | undefined {
    const next = this.#next()
    return next === undefined ? undefined : next.dueMs - this.#monotonicMs
  }

  /** Moves time on by `ms`, firing what falls due on the way, and lets everything settle. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#monotonicMs + ms
    await this.settle()
    for (let next = this.#next(); next !== undefined && next.dueMs <= untilMs; next = this.#next()) {
      this.#pending.delete(next)
      this.#moveTo(Math.max(next.dueMs, this.#monotonicMs))
      next.fire()
      await this.settle()
    }
    this.#moveTo(untilMs)
    await this.settle()
  }

  /** Time passes and nothing can run meanwhile, as when the process is stopped; then all that fell due fires. */
  async freeze(ms: number): Promise<void> {
    this.#moveTo(this.#monotonicMs + ms)
    await this.advance(0)
  }

  /** Moves to the next timer and fires all that are due then; false when none waits. */
  async advanceToNextTimer(): Promise<boolean> {
    const delayMs = this.nextTimerMs
    if (delayMs === undefined) return false
    await this.advance(Math.max(delayMs, 0))
    return true
  }

  /** Lets the promises that can go on without time passing do so. */
  async settle(): Promise<void> {
    await nextTurn()
  }

  /** Sets the wall clock without any time passing, as NTP or an administrator would. */
  setWall(wallMs: number): void {
    this.#wallMs = wallMs
  }

  /** The host is suspended for so long: timers stand still. */
  suspend(ms: number): void {
    this.#wallMs += ms
    this.#uptimeAheadMs += ms
  }

  /** The host is up for so long, as after a boot. */
  boot(uptimeMs = 0): void {
    this.#uptimeAheadMs = uptimeMs - this.#monotonicMs
  }

  #next(): PendingTimer | undefined {
    let first: PendingTimer | undefined
    for (const timer of this.#pending) {
      const earlier =
        first === undefined ||
        timer.dueMs < first.dueMs ||
        (timer.dueMs === first.dueMs && timer.order < first.order)
      if (earlier) first = timer
    }
    return first
  }

  #moveTo(monotonicMs: number): void {
    this.#wallMs += monotonicMs - this.#monotonicMs
    this.#monotonicMs = monotonicMs
  }
}
