import type { Timer } from '../../base/clock.ts'
import type { PodAction } from '../../decide/plan/pod-action.ts'
import type { PodUid } from '../../pod/values/ids.ts'
import type { ObservedPod } from '../../pod/state/observed.ts'
import { executeActions } from '../actions/execute-actions.ts'
import type { PodContext } from '../actions/pod-context.ts'
import { makePodContext } from './pod-pass.ts'
import type { PodPassDeps } from './pod-pass.ts'
import type { PodState } from './pod-state.ts'

export interface PodExecutorDeps extends PodPassDeps {
  readonly observe: (uid: PodUid) => Promise<ObservedPod | undefined>
}

/**
 * What ends a pass early: `signal` all its waits, `manifestSignal` those for what a changed manifest may not want,
 * `lifeSignal` what outlives a pass.
 */
export type PassSignals = Pick<PodContext, 'signal' | 'manifestSignal' | 'lifeSignal'>

/** A pass that is done sooner shows the news itself. */
const newsDelayMs = 1000

/** Carries out what the passes of one pod decide, and looks at the pod meanwhile when there is news of it. */
export class PodExecutor {
  readonly #deps: PodExecutorDeps
  readonly #state: PodState
  readonly #onNews: (observed: ObservedPod) => void
  /** That of the actions in flight; undefined while there are none. */
  #signal: AbortSignal | undefined
  #newsTimer: Timer | undefined

  /** @param onNews what is seen of the pod in the middle of its actions; these go by what was seen before */
  constructor(deps: PodExecutorDeps, state: PodState, onNews: (observed: ObservedPod) => void) {
    this.#deps = deps
    this.#state = state
    this.#onNews = onNews
  }

  /** Throws what a call threw, or what ended the pass. */
  async run(
    actions: readonly PodAction[],
    signals: PassSignals,
    onContainersStopped: PodContext['onContainersStopped'] = () => {},
  ): Promise<void> {
    this.#signal = signals.signal
    try {
      const context = makePodContext(this.#deps, this.#state, {
        ...signals,
        onContainersStopped,
        lookSoon: () => this.notice(),
      })
      await executeActions(context, actions)
    } finally {
      this.#signal = undefined
      this.#newsTimer?.cancel()
      this.#newsTimer = undefined
    }
  }

  /** The pod changed: its status is published soon if a slow action is in flight. */
  notice(): void {
    if (this.#signal !== undefined)
      this.#newsTimer ??= this.#deps.clock.startTimer(newsDelayMs, () => void this.#look())
  }

  async #look(): Promise<void> {
    this.#newsTimer = undefined
    // Each pass has its own.
    const signal = this.#signal
    const { name: pod, uid } = this.#state.ref
    try {
      const observed = await this.#deps.observe(uid)
      if (observed === undefined || signal === undefined) return
      if (signal === this.#signal && !signal.aborted) this.#onNews(observed)
    } catch (error) {
      this.#deps.logger.debug({ pod, uid, err: error }, 'cannot publish the status of the pod')
    }
  }
}
