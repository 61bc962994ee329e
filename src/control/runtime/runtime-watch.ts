import { type Clock, sleepUnlessAborted } from '../../base/clock.ts'
import type { RuntimePulse } from './runtime-pulse.ts'

export interface RuntimeWatchOptions {
  readonly clock: Clock
  readonly pulse: Pick<RuntimePulse, 'answer' | 'isAsking'>
  /** Everything observed of the runtime before is out of date. */
  readonly onGap: (message: string) => void
  /**
   * The runtime has been silent for a minute; called again after each further minute. Undefined for an external
   * runtime, which is asked only while a call waits for it.
   */
  readonly onFrozen: (() => void) | undefined
}

/** How often the runtime is asked whether it answers. */
const periodMs = 10_000
/** After this it counts as silent. If its last answer took longer, twice that time applies, up to the longest. */
const silentMs = 5_000
const longestSilentMs = 30_000
/**
 * After this, not counting time in which podd did not run, podd gives up waiting for it; docs/OPERATIONS.md names it.
 */
const frozenMs = 60_000
/** A timer that is later than this shows that podd did not run. */
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
      await sleepUnlessAborted(clock, periodMs, signal)
      if (signal.aborted) return
      this.look()
      if (onFrozen !== undefined || pulse.isAsking) await this.#ask(signal)
    }
  }

  /** Whether podd is just waking up from a gap. Ask before acting on an observation. */
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
   * Resolves when the runtime has answered or turned out to be unavailable. A slow runtime doesn't count as silent each
   * time: every silence makes earlier lists outdated, and a list that takes longer than the time between two silences
   * would never count.
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
        // It answered, or the watch ends.
        () => false,
      )
    for (let waitedMs = silentMs; await isSilent(); waitedMs += silentMs) {
      this.look()
      if (waitedMs === limitMs) onGap('the container runtime does not answer')
      if (waitedMs % frozenMs === 0) onFrozen?.()
    }
  }
}
