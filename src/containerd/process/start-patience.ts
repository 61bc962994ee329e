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

/** What a process has done so far. */
export interface ProcessWork {
  /** Processor time, in ticks; undefined where that can't be read. */
  readonly ticks: number | undefined
  /** Read from disks; undefined where that can't be read. */
  readonly diskBytes: number | undefined
}

/**
 * How long a containerd that does not answer is waited for. One that takes processor time, or reads from the disk, reads
 * the records of its containers and snapshots, which takes minutes on a slow board or disk: to kill it has it begin again.
 */
export class StartPatience {
  readonly #options: StartPatienceOptions
  readonly #sinceMs: number
  #busyAtMs: number
  #ticks: number | undefined
  #diskBytes: number | undefined

  constructor(options: StartPatienceOptions) {
    this.#options = options
    this.#sinceMs = options.clock.monotonicMs()
    this.#busyAtMs = this.#sinceMs
  }

  /** It was at work until its time was over: more of it may help. */
  get wasBusy(): boolean {
    return this.#options.clock.monotonicMs() - this.#busyAtMs < this.#options.quietMs
  }

  isOver({ ticks, diskBytes }: ProcessWork): boolean {
    const { clock, quietMs, longestMs } = this.#options
    const nowMs = clock.monotonicMs()
    this.#ticks ??= ticks
    this.#diskBytes ??= diskBytes
    const hasRun = ticks !== undefined && this.#ticks !== undefined && ticks - this.#ticks >= busyTicks
    const hasRead = diskBytes !== undefined && diskBytes !== this.#diskBytes
    if (hasRun) this.#ticks = ticks
    if (hasRead) this.#diskBytes = diskBytes
    if (hasRun || hasRead) this.#busyAtMs = nowMs
    return nowMs - this.#busyAtMs >= quietMs || nowMs - this.#sinceMs >= longestMs
  }
}
