import type { Clock } from '../../base/clock.ts'
import type { RuntimeService } from '../../cri/cri-runtime.ts'

/**
 * Knows of the calls in flight in which the runtime makes what it doesn't list until they are done: a sandbox, a
 * container, and a container's process.
 */
export class MakingCalls {
  /** To be used in place of the service it was made for. */
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

  /** How many have failed, or were cancelled: each may have made something all the same. */
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
