const windowMs = 1000
const passesPerWindow = 30

/**
 * Slows down who finds something to do again and again at once: a runtime that says it has stopped what
 * it then shows as running must not make podd spin. What a pod needs in earnest takes a few passes.
 */
export class PassPace {
  #fromMs = -Infinity
  #passes = 0

  /** A pass is to begin at `nowMs` (monotonic): the milliseconds it has to wait, 0 for none. */
  delayMs(nowMs: number): number {
    if (nowMs - this.#fromMs >= windowMs) {
      this.#fromMs = nowMs
      this.#passes = 0
    }
    this.#passes += 1
    return this.#passes <= passesPerWindow ? 0 : this.#fromMs + windowMs - nowMs
  }
}
