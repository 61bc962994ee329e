/**
 * Image fetches in flight for containers that keep running meanwhile, one per container. A pull may take long, and the
 * pod's passes don't wait for it.
 */
export class AheadFetches {
  readonly #onEnd: () => void
  readonly #inFlight = new Map<string, AbortController>()

  /** @param onEnd a fetch has ended without being cancelled, successfully or not */
  constructor(onEnd: () => void) {
    this.#onEnd = onEnd
  }

  has(container: string): boolean {
    return this.#inFlight.has(container)
  }

  /** @param fetch never rejects; its result is ignored once the signal is aborted */
  begin(container: string, fetch: (signal: AbortSignal) => Promise<void>): void {
    this.#inFlight.get(container)?.abort()
    const abort = new AbortController()
    this.#inFlight.set(container, abort)
    void fetch(abort.signal).finally(() => {
      if (abort.signal.aborted) return
      this.#inFlight.delete(container)
      this.#onEnd()
    })
  }

  /** Cancels the fetch for this container, or all of them without a name. */
  cancel(container?: string): void {
    for (const [name, abort] of this.#inFlight) {
      if (container !== undefined && container !== name) continue
      abort.abort()
      this.#inFlight.delete(name)
    }
  }
}
