import type { Clock, Timer } from '../../base/clock.ts'

/** How often the runtime is asked while somebody waits for it. */
const beatMs = 500
/** An answer that takes less is what any loaded host may cost. */
const noticeableMs = 100

/**
 * Measures for how long the runtime answered nothing, by something cheap that it is asked while other calls wait
 * for it. Without such calls it isn't asked.
 */
export class RuntimePulse {
  readonly #clock: Clock
  readonly #ask: () => Promise<unknown>
  #waiting = 0
  #silentMs = 0
  #question: { readonly sinceMs: number; readonly answered: Promise<boolean> } | undefined
  #timer: Timer | undefined

  /** @param ask resolves when the runtime has answered; rejects where it isn't there, or after a deadline of its own */
  constructor(clock: Clock, ask: () => Promise<unknown>) {
    this.#clock = clock
    this.#ask = ask
  }

  /** A call begins to wait for the runtime; give the mark to `silentMs`, and call `leave` once. */
  enter(): number {
    this.#waiting += 1
    this.#arm()
    return this.#totalMs()
  }

  leave(): void {
    this.#waiting -= 1
    if (this.#waiting > 0) return
    this.#timer?.cancel()
    this.#timer = undefined
  }

  /** For how many milliseconds the runtime was silent since the mark, as far as it was asked. */
  silentMs(mark: number): number {
    return this.#totalMs() - mark
  }

  /** A question is open. */
  get isAsking(): boolean {
    return this.#question !== undefined
  }

  /** Asks, unless a question is open. Resolves with true when the runtime has answered, with false when the question failed. */
  answer(): Promise<boolean> {
    if (this.#question !== undefined) return this.#question.answered
    const sinceMs = this.#clock.monotonicMs()
    const close = (isAnswered: boolean): boolean => {
      this.#silentMs += this.#openMs()
      this.#question = undefined
      return isAnswered
    }
    const answered = this.#ask().then(
      () => close(true),
      () => close(false),
    )
    this.#question = { sinceMs, answered }
    return answered
  }

  #totalMs(): number {
    return this.#silentMs + this.#openMs()
  }

  /** How long the open question has gone without an answer. */
  #openMs(): number {
    if (this.#question === undefined) return 0
    const openMs = this.#clock.monotonicMs() - this.#question.sinceMs
    return openMs < noticeableMs ? 0 : openMs
  }

  #arm(): void {
    this.#timer ??= this.#clock.startTimer(beatMs, () => {
      this.#timer = undefined
      void this.answer()
      this.#arm()
    })
  }
}
