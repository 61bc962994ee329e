import type { Clock } from '../../base/clock.ts'
import type { CallOptions, RuntimeService } from '../../runtime/cri-runtime.ts'
import { StartGate } from './start-gate.ts'
import type { StartStage } from './start-gate.ts'

/**
 * Tracks and bounds the calls in flight that create something which the runtime lists only afterwards: a sandbox, a container,
 * a container's process.
 */
export class MakingCalls {
  /**
   * The service with tracked calls; use it in place of the service itself. The signal of a call that creates something ends
   * the wait for its turn alone: once it was sent, its result is awaited.
   */
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
        this.#make('sandbox', (bound) => runtime.runPodSandbox(request, bound), options),
      createContainer: (request, options) =>
        this.#make('container', (bound) => runtime.createContainer(request, bound), options),
      startContainer: (request, options) =>
        this.#make('start', (bound) => runtime.startContainer(request, bound), options),
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

  #make<Reply>(
    stage: StartStage,
    send: (options: CallOptions) => Promise<Reply>,
    options: CallOptions = {},
  ): Promise<Reply> {
    return this.#gate.run(stage, () => this.#track(send, options), options.signal)
  }

  async #track<Reply>(send: (options: CallOptions) => Promise<Reply>, options: CallOptions): Promise<Reply> {
    const { signal } = options
    const call = { sinceMs: this.#clock.monotonicMs() }
    const unsent = new AbortController()
    const leave = (): void => unsent.abort(signal?.reason)
    const stay = (): void => signal?.removeEventListener('abort', leave)
    signal?.addEventListener('abort', leave, { once: true })
    const onSent = (): void => {
      stay()
      options.onSent?.()
    }
    this.#inFlight.add(call)
    try {
      return await send({ ...options, signal: unsent.signal, onSent })
    } catch (error) {
      if (!unsent.signal.aborted) this.#failures += 1
      throw error
    } finally {
      stay()
      this.#inFlight.delete(call)
    }
  }
}
