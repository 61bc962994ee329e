/**
 * Wakes one waiter for many senders. Calls that come before the waiter looks count as one: it reads the
 * newest facts, so a queue would only repeat work.
 */
export class WakeSlot {
  #knocked = false
  #resolve: (() => void) | undefined

  wake(): void {
    this.#knocked = true
    const resolve = this.#resolve
    this.#resolve = undefined
    resolve?.()
  }

  /** Resolves at the next knock, or at once if one came since the last wait. One waiter at a time. */
  async wait(): Promise<void> {
    if (!this.#knocked) {
      await new Promise<void>((resolve) => {
        this.#resolve = resolve
      })
    }
    this.#knocked = false
  }
}
