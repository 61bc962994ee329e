import type { Clock } from '../../base/clock.ts'
import type { RuntimeService } from '../../cri/cri-runtime.ts'
import { StartGate } from './start-gate.ts'
import type { StartStage } from './start-gate.ts'

/**
 * Tracks and bounds the calls in flight that create something which the runtime lists only afterwards: a sandbox, a container,
 * a container's process.
 */
export class MakingCalls {
  /** The service with tracked calls; use it in place of the service itself. */
  readonly runtime: RuntimeService
  readonly #inFlight = new Set<{ readonly sinceMs: number }>()
  readonly #clock: Clock
  readonly #gate: StartGate
  #failures = 0

  /** @param limit how many of them the runtime has at a time; further ones wait */
  constructor(runtime: RuntimeService, { clock, limit }: { readonly clock: Clock; readonly limit: number }) {
    this.#clock = clock
    this.#gate = new StartGate(limit, clock)
    this.runtime = {
      ...runtime,
      runPodSandbox: (request, options) =>
        this.#make('sandbox', () => runtime.runPodSandbox(request, options)),
      createContainer: (request, options) =>
        this.#make('container', () => runtime.createContainer(request, options)),
      startContainer: (request, options) =>
        this.#make('start', () => runtime.startContainer(request, options)),
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

  #make<Reply>(stage: StartStage, send: () => Promise<Reply>): Promise<Reply> {
    return this.#gate.run(stage, () => this.#track(send))
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
