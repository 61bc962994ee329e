import type { Clock } from '../../base/clock.ts'

export interface StartPatienceOptions {
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** How long one that does nothing is waited for. */
  readonly quietMs: number
  /** How long one is waited for at most, whatever it does. */
  readonly longestMs: number
}

/** What a process takes that has not come to a stop: 50 ms. Timers alone take less within `quietMs`. */
const busyTicks = 5

/**
 * How long a containerd that does not answer is waited for. One that takes processor time reads the records of its
 * containers and snapshots, which takes minutes on a slow board or disk: to kill it has it begin again.
 */
export class StartPatience {
  readonly #options: StartPatienceOptions
  readonly #sinceMs: number
  #busyAtMs: number
  #ticks: number | undefined

  constructor(options: StartPatienceOptions) {
    this.#options = options
    this.#sinceMs = options.clock.monotonicMs()
    this.#busyAtMs = this.#sinceMs
  }

  /** @param ticks what the process has taken of the processor's time so far; undefined where that can't be read */
  isOver(ticks: number | undefined): boolean {
    const { clock, quietMs, longestMs } = this.#options
    const nowMs = clock.monotonicMs()
    this.#ticks ??= ticks
    if (ticks !== undefined && this.#ticks !== undefined && ticks - this.#ticks >= busyTicks) {
      this.#ticks = ticks
      this.#busyAtMs = nowMs
    }
    return nowMs - this.#busyAtMs >= quietMs || nowMs - this.#sinceMs >= longestMs
  }
}
