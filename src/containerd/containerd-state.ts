import { type Clock, sleepUnlessAborted } from '../base/clock.ts'
import { PoddError } from '../base/errors.ts'
import type { ContainerdVersion } from './process/containerd-version.ts'
import type { ImageImportTarget } from './process/import-image.ts'

/** The containerd that `start` adopted or started. */
export interface RunningContainerd {
  readonly pid: number
  readonly version: ContainerdVersion
  readonly socketPath: string
  /** It was adopted: it ran before podd started. */
  readonly adopted: boolean
  /** The subnets that pods get their addresses from. */
  readonly podCidrs: readonly string[]
  readonly importTarget: ImageImportTarget
}

export type ContainerdState =
  | { readonly kind: 'stopped' }
  | { readonly kind: 'running'; readonly running: RunningContainerd }
  /** It exited, or does not start; the next attempt is at `retryAtMs` (wall time). */
  | { readonly kind: 'down'; readonly message: string; readonly retryAtMs: number }

/** How long a call waits for a containerd that is still starting. */
const startPatienceMs = 30_000

/** The state of the embedded containerd, and the listeners for its changes. */
export class ContainerdStateStore {
  readonly #clock: Clock
  readonly #listeners = new Set<(state: ContainerdState) => void>()
  #state: ContainerdState = { kind: 'stopped' }

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get current(): ContainerdState {
    return this.#state
  }

  get running(): RunningContainerd | undefined {
    return this.#state.kind === 'running' ? this.#state.running : undefined
  }

  set(state: ContainerdState): void {
    this.#state = state
    for (const listener of this.#listeners) listener(state)
  }

  /** Calls back at every change until the returned function is called. */
  onChange(listener: (state: ContainerdState) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /**
   * Waits for the first start.
   * @throws PoddError when containerd is down, or has not started within half a minute
   */
  async whenRunning(): Promise<RunningContainerd> {
    if (this.#state.kind === 'stopped') {
      const changed = new AbortController()
      const stop = this.onChange(() => changed.abort())
      await sleepUnlessAborted(this.#clock, startPatienceMs, changed.signal)
      stop()
    }
    const state = this.#state
    if (state.kind === 'running') return state.running
    const reason = state.kind === 'down' ? state.message : 'it is still starting'
    throw new PoddError('RUNTIME_UNAVAILABLE', `containerd is not ready: ${reason}`, {
      hint: 'Try again when it runs; `podd get pods` and `podd doctor` say what is wrong with it.',
    })
  }
}
