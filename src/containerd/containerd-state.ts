import type { Clock } from '../base/clock.ts'
import { PoddError } from '../base/errors.ts'
import type { ContainerdVersion } from './process/containerd-version.ts'
import type { ImageImportTarget } from './process/import-image.ts'

/** What `start` found or made. */
export interface RunningContainerd {
  readonly pid: number
  readonly version: ContainerdVersion
  readonly socketPath: string
  /** It ran before podd did. */
  readonly adopted: boolean
  /** The subnets that pods get their addresses from. */
  readonly podCidrs: readonly string[]
  readonly importTarget: ImageImportTarget
}

export type ContainerdState =
  | { readonly kind: 'stopped' }
  | { readonly kind: 'running'; readonly running: RunningContainerd }
  /** It died, or does not start; the next try is at `retryAtMs` (wall time). */
  | { readonly kind: 'down'; readonly message: string; readonly retryAtMs: number }

/** How long a call waits for a containerd that is still starting. */
const startPatienceMs = 30_000

/** The state of the containerd of podd's own, and who is called back when it changes. */
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

  /** Calls back at every change; the returned function ends that. */
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
      await this.#clock.sleep(startPatienceMs, changed.signal).catch(() => undefined)
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
