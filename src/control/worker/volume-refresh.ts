import type { Clock, Timer } from '../../base/clock.ts'

/** Files of volumes that readers may still look at are tidied away after this. */
const tidyAfterMs = 2000
/** What failed is tried again after this, then after twice that, and so on; a full disk may have room again. */
const firstRetryMs = 10_000
const longestRetryMs = 120_000

/**
 * Keeps the files of one pod's volumes up to date: once marked, the next pass writes them again where they
 * differ, and a later one tidies up behind it.
 */
export class VolumeRefresh {
  readonly #clock: Clock
  readonly #wake: () => void
  /** What podd that ran before left may be out of date. */
  #due: 'no' | 'refresh' | 'tidy' = 'refresh'
  #timer: Timer | undefined
  #retryMs = firstRetryMs

  constructor(clock: Clock, wake: () => void) {
    this.#clock = clock
    this.#wake = wake
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
