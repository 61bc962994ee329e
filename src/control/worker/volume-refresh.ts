import type { Clock, Timer } from '../../base/clock.ts'

/** Old files of volumes are removed after this, so that readers can finish. */
const tidyAfterMs = 2000
/** The first delay before a failed update is tried again; it doubles each time. A full disk may have room again. */
const firstRetryMs = 10_000
const longestRetryMs = 120_000

/**
 * Keeps the files of one pod's volumes up to date: once marked, the next pass writes them again where they differ, and
 * a later one removes the old files.
 */
export class VolumeRefresh {
  readonly #clock: Clock
  readonly #wake: () => void
  #due: 'no' | 'refresh' | 'tidy'
  #timer: Timer | undefined
  #retryMs = firstRetryMs

  /**
   * @param begins `refresh` where files of an earlier podd may be out of date; `no` for a new pod, whose files its start
   * writes
   */
  constructor(clock: Clock, wake: () => void, begins: 'no' | 'refresh') {
    this.#clock = clock
    this.#wake = wake
    this.#due = begins
  }

  mark(): void {
    this.#due = 'refresh'
  }

  /** Does what is due. Throws what `prepare` throws; that is tried again after a while, or with the next mark. */
  async run(prepare: () => Promise<unknown>): Promise<void> {
    const due = this.#due
    if (due === 'no') return
    this.#due = 'no'
    try {
      await prepare()
    } catch (error) {
      this.#wakeIn(this.#retryMs, due)
      this.#retryMs = Math.min(this.#retryMs * 2, longestRetryMs)
      throw error
    }
    this.#retryMs = firstRetryMs
    if (due === 'refresh') this.#wakeIn(tidyAfterMs, 'tidy')
  }

  stop(): void {
    this.#timer?.cancel()
  }

  #wakeIn(delayMs: number, due: 'refresh' | 'tidy'): void {
    this.#timer?.cancel()
    this.#timer = this.#clock.startTimer(delayMs, () => {
      if (this.#due === 'no') this.#due = due
      this.#wake()
    })
  }
}
