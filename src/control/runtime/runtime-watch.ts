import type { Clock } from '../../base/clock.ts'
import type { RuntimePulse } from './runtime-pulse.ts'

export interface RuntimeWatchOptions {
  readonly clock: Clock
  readonly pulse: Pick<RuntimePulse, 'answer' | 'isAsking'>
  /** Whatever was seen of the runtime before is out of date. */
  readonly onGap: (message: string) => void
  /**
   * The runtime has been silent for a minute; once more after each further one. Undefined for somebody else's runtime,
   * which isn't asked either unless something waits for it.
   */
  readonly onFrozen: (() => void) | undefined
}

/** How often the runtime is asked whether it answers. */
const periodMs = 10_000
/** After this it counts as silent; one whose last answer took longer, after twice that time, up to the longest. */
const silentMs = 5_000
const longestSilentMs = 30_000
/** After this, of time that podd ran, it isn't waited for any more; docs/OPERATIONS.md names it. */
const frozenMs = 60_000
/** How much longer than meant podd may go without a look at its clock: it did not run then. */
const stoppedMs = 10_000

/**
 * Notices that the runtime has answered nothing for a while, and that podd itself did not run: stopped by a signal,
 * or with the whole host. What happened in such a gap was not observed.
 */
export class RuntimeWatch {
  readonly #options: RuntimeWatchOptions
  #lookedMonotonicMs: number
  #lookedWallMs: number
  /** How long the last answer took. */
  #answerMs = 0

  constructor(options: RuntimeWatchOptions) {
    this.#options = options
    this.#lookedMonotonicMs = options.clock.monotonicMs()
    this.#lookedWallMs = options.clock.wallMs()
  }

  /** Runs until the signal is aborted; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, pulse, onFrozen } = this.#options
    this.#noteLook()
    while (!signal.aborted) {
      await clock.sleep(periodMs, signal).catch(() => undefined)
      if (signal.aborted) return
      this.look()
      if (onFrozen !== undefined || pulse.isAsking) await this.#ask(signal)
    }
  }

  /** Tells of a gap that podd wakes up from right now; to be asked before anything is done on what was seen. */
  look(): void {
    const { clock, onGap } = this.#options
    const monotonicMs = clock.monotonicMs()
    const wallMs = clock.wallMs()
    const ranMs = monotonicMs - this.#lookedMonotonicMs
    // The monotonic clock stands still while the host is suspended.
    const suspendedMs = wallMs - this.#lookedWallMs - ranMs
    this.#noteLook()
    if (Math.max(ranMs - periodMs, suspendedMs) > stoppedMs) onGap('podd did not run for a while')
  }

  #noteLook(): void {
    this.#lookedMonotonicMs = this.#options.clock.monotonicMs()
    this.#lookedWallMs = this.#options.clock.wallMs()
  }

  /**
   * Resolves when the runtime has answered, or has shown that it isn't there. A slow one is not silent each time: what was
   * listed before it fell silent is out of date, and a list that takes longer than from one such moment to the next would
   * never count.
   */
  async #ask(signal: AbortSignal): Promise<void> {
    const { clock, pulse, onGap, onFrozen } = this.#options
    const askedMs = clock.monotonicMs()
    const limitMs = Math.min(
      longestSilentMs,
      silentMs * Math.max(1, Math.ceil((2 * this.#answerMs) / silentMs)),
    )
    const answered = new AbortController()
    void pulse.answer().then((isAnswered) => {
      if (isAnswered) this.#answerMs = clock.monotonicMs() - askedMs
      answered.abort()
    })
    const over = AbortSignal.any([signal, answered.signal])
    const isSilent = (): Promise<boolean> =>
      clock.sleep(silentMs, over).then(
        () => true,
        () => false,
      )
    for (let waitedMs = silentMs; await isSilent(); waitedMs += silentMs) {
      this.look()
      if (waitedMs === limitMs) onGap('the container runtime does not answer')
      if (waitedMs % frozenMs === 0) onFrozen?.()
    }
  }
}
