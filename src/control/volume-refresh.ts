import type { Clock, Timer } from '../base/clock.ts'

/** Files of volumes that readers may still look at are tidied away after this. */
const tidyAfterMs = 2000

/**
 * Keeps the files of one pod's volumes up to date: once marked, the next pass writes them anew where they
 * differ, and a later one tidies up behind it.
 */
export class VolumeRefresh {
  readonly #clock: Clock
  readonly #wake: () => void
  /** What podd that ran before left may be out of date. */
  #due: 'no' | 'refresh' | 'tidy' = 'refresh'
  #timer: Timer | undefined

  constructor(clock: Clock, wake: () => void) {
    this.#clock = clock
    this.#wake = wake
  }

  mark(): void {
    this.#due = 'refresh'
  }

  /** Does what is due; what fails is left until the next mark. */
  async run(prepare: () => Promise<unknown>): Promise<void> {
    const due = this.#due
    if (due === 'no') return
    this.#due = 'no'
    await prepare()
    if (due !== 'refresh') return
    this.#timer?.cancel()
    this.#timer = this.#clock.startTimer(tidyAfterMs, () => {
      if (this.#due === 'no') this.#due = 'tidy'
      this.#wake()
    })
  }

  stop(): void {
    this.#timer?.cancel()
  }
}
