import type { Clock } from '../../base/clock.ts'
import type { RuntimeService } from '../../cri/cri-runtime.ts'

/**
 * Tracks the calls in flight that create something which the runtime lists only afterwards: a sandbox, a container, a
 * container's process.
 */
export class MakingCalls {
  /** The service with tracked calls; use it in place of the service itself. */
  readonly runtime: RuntimeService
  readonly #inFlight = new Set<{ readonly sinceMs: number }>()
  readonly #clock: Clock
  #failures = 0

  constructor(runtime: RuntimeService, clock: Clock) {
    this.#clock = clock
    this.runtime = {
      ...runtime,
      runPodSandbox: (request, options) => this.#track(() => runtime.runPodSandbox(request, options)),
      createContainer: (request, options) => this.#track(() => runtime.createContainer(request, options)),
      startContainer: (request, options) => this.#track(() => runtime.startContainer(request, options)),
    }
  }

  /** When the oldest one in flight was sent (monotonic time); undefined where none is. */
  get sinceMs(): number | undefined {
    const [oldest] = this.#inFlight
    return oldest?.sinceMs
  }

  /** How many have failed or were cancelled: each may have created something nevertheless. */
  get failures(): number {
    return this.#failures
  }

  async #track<Reply>(send: () => Promise<Reply>): Promise<Reply> {
    const call = { sinceMs: this.#clock.monotonicMs() }
    this.#inFlight.add(call)
    try {
      return await send()
    } catch (error) {
      this.#failures += 1
      throw error
    } finally {
      this.#inFlight.delete(call)
    }
  }
}
