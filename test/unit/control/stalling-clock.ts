import type { Clock, Timer } from '../../../src/base/clock.ts'
import { ManualClock } from '../../support/manual-clock.ts'

interface Waiting {
  dueMs: number
  readonly fire: () => void
  timer: Timer
}

/** A manual clock that can also jump ahead without any timer getting its turn, as when the event loop is blocked. */
export class StallingClock implements Clock {
  readonly #clock = new ManualClock()
  readonly #waiting = new Set<Waiting>()
  #jumpedMs = 0

  wallMs(): number {
    return this.#clock.wallMs() + this.#jumpedMs
  }

  monotonicMs(): number {
    return this.#clock.monotonicMs() + this.#jumpedMs
  }

  uptimeMs(): number {
    return this.#clock.uptimeMs() + this.#jumpedMs
  }

  startTimer(delayMs: number, fire: () => void): Timer {
    const waiting: Waiting = {
      dueMs: this.#clock.monotonicMs() + delayMs,
      fire: () => {
        this.#waiting.delete(waiting)
        fire()
      },
      timer: { cancel() {} },
    }
    waiting.timer = this.#clock.startTimer(delayMs, waiting.fire)
    this.#waiting.add(waiting)
    return {
      cancel: () => {
        this.#waiting.delete(waiting)
        waiting.timer.cancel()
      },
    }
  }

  sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    return this.#clock.sleep(delayMs, signal)
  }

  /** Time passes and nothing of podd runs; timers that fell due fire at the next `advance`. */
  stall(ms: number): void {
    this.#jumpedMs += ms
    for (const waiting of this.#waiting) {
      waiting.dueMs -= ms
      waiting.timer.cancel()
      waiting.timer = this.#clock.startTimer(waiting.dueMs - this.#clock.monotonicMs(), waiting.fire)
    }
  }

  async advance(ms: number): Promise<void> {
    await this.#clock.advance(ms)
  }

  get pendingTimers(): number {
    return this.#clock.pendingTimers
  }
}
