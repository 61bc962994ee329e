import type { Clock } from '../../base/clock.ts'

export interface StartPatienceOptions {
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** How long podd waits for one that does nothing. */
  readonly quietMs: number
  /** How long podd waits at most, whatever it does. */
  readonly longestMs: number
}

/** The processor time that shows that a process is working: 50 ms. Timers alone take less within `quietMs`. */
const busyTicks = 5

/** The work of a process so far. */
export interface ProcessWork {
  /** Processor time, in ticks; undefined where that can't be read. */
  readonly ticks: number | undefined
  /** Read from disks; undefined where that can't be read. */
  readonly diskBytes: number | undefined
}

/**
 * How long podd waits for a containerd that does not answer. One that uses processor time or reads from the disk is
 * loading the records of its containers and snapshots, which takes minutes on a slow board or disk. Killing it would
 * only make it begin again.
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

  /** Whether it was working until its time was over, so that more time may help. */
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
