import type { Clock, Timer } from '../../base/clock.ts'

/** The period of the questions while a call waits for the runtime. */
const beatMs = 500
/** An answer within this time is normal on a loaded host. */
const noticeableMs = 100

/**
 * Measures for how long the runtime did not answer, by a cheap call that is sent while other calls wait for it. Without
 * such calls none is sent.
 */
export class RuntimePulse {
  readonly #clock: Clock
  readonly #ask: () => Promise<unknown>
  #waiting = 0
  #silentMs = 0
  #question: { readonly sinceMs: number; readonly answered: Promise<boolean> } | undefined
  #timer: Timer | undefined

  /**
   * @param ask resolves when the runtime has answered; rejects where it is unavailable, or after a deadline of its own
   */
  constructor(clock: Clock, ask: () => Promise<unknown>) {
    this.#clock = clock
    this.#ask = ask
  }

  /** A call begins to wait for the runtime. Returns a mark for `silentMs`; call `leave` once afterwards. */
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

  /** For how many milliseconds the runtime was silent since the mark, as far as that was measured. */
  silentMs(mark: number): number {
    return this.#totalMs() - mark
  }

  /** A call is in flight. */
  get isAsking(): boolean {
    return this.#question !== undefined
  }

  /**
   * Sends the cheap call, unless one is in flight. Resolves with true when the runtime has answered, with false when
   * the call failed.
   */
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
      // Its silence is the answer; `RuntimeWatch` reports it when it lasts.
      () => close(false),
    )
    this.#question = { sinceMs, answered }
    return answered
  }

  #totalMs(): number {
    return this.#silentMs + this.#openMs()
  }

  /** For how long the call in flight has been unanswered. */
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
