/**
 * Wakes one waiter for many senders. Calls before the waiter runs count as one: it reads the newest facts, so a queue
 * would only repeat work.
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

  /** Resolves at the next wake, or at once if there was one since the last wait. One waiter at a time. */
  async wait(): Promise<void> {
    if (!this.#knocked) {
      await new Promise<void>((resolve) => {
        this.#resolve = resolve
      })
    }
    this.#knocked = false
  }
}
