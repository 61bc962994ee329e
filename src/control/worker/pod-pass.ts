import type { PodUid } from '../../pod/values/ids.ts'
import type { ObservedPod } from '../../pod/state/observed.ts'
import { OutdatedView } from '../actions/interrupted.ts'
import { linkLogs, unlinkGone } from '../actions/link-logs.ts'
import type { LinkLogsDeps } from '../actions/link-logs.ts'
import type { PassSignals } from '../actions/pod-context.ts'
import type { EndPass } from './end-pass.ts'
import type { LivePass } from './live-pass.ts'
import type { PodStage, PodState } from './pod-state.ts'
import { forgetDoneRestarts } from './request-restart.ts'

export interface PodPassDeps extends LinkLogsDeps {
  readonly livePass: LivePass
  readonly endPass: EndPass
  readonly observe: (uid: PodUid) => Promise<ObservedPod | undefined>
  /** Why the runtime can't be used for now. */
  readonly runtimeProblem: () => string | undefined
  /** See PassDeps. */
  readonly runtimeLosses: () => number
  /** What is to be probed may have changed. */
  readonly onObserved: () => void
  /** The pod has finished, or runs again. */
  readonly onStage: () => void
  readonly publishStatus: () => void
  readonly setStage: (stage: PodStage) => void
  readonly wakeIn: (delayMs: number) => void
}

/** One pass of a pod's worker: it observes the pod, records what has ended, and does what a live or ending pod needs. */
export class PodPass {
  readonly #deps: PodPassDeps
  readonly #state: PodState

  constructor(deps: PodPassDeps, state: PodState) {
    this.#deps = deps
    this.#state = state
  }

  /** Throws what a call threw, Interrupted where the pass was interrupted, OutdatedView where it has to begin again. */
  async run(signals: PassSignals): Promise<void> {
    const { runtimeProblem, runtimeLosses, publishStatus, livePass, endPass } = this.#deps
    const state = this.#state
    // The runtime's return wakes every worker.
    if (runtimeProblem() !== undefined) return publishStatus()
    const waitMs = endPass.remainsWaitMs()
    if (waitMs !== undefined) return this.#deps.wakeIn(waitMs)
    const wasOver = state.isOver
    const losses = runtimeLosses()
    await this.#observe()
    state.lossesWhenSeen = losses
    if (losses !== runtimeLosses()) throw new OutdatedView()
    if (!state.isSeen) await unlinkGone(this.#deps, state.observed)
    await linkLogs(this.#deps, state.observed, state.linkedLogs)
    state.isSeen = true
    await state.memory.rememberEnds(state.observed)
    forgetDoneRestarts(state)
    if (state.isOver !== wasOver) this.#deps.onStage()
    this.#deps.onObserved()
    const { ending } = state.record
    if (ending !== undefined) return endPass.run(ending, signals)
    if (await this.#mayRun()) await livePass.run(signals)
    return endPass.release(signals)
  }

  async #observe(): Promise<void> {
    const state = this.#state
    const { isUnheardOf } = state
    state.isUnheardOf = false
    // What was decided is recorded while the runtime is asked.
    const saved = state.record.ending === undefined ? undefined : state.memory.save('best-effort')
    const observed = isUnheardOf ? undefined : await this.#deps.observe(state.ref.uid)
    await saved
    state.observed = observed ?? state.nothing
  }

  /** Blocked, rejected and failed pods are shown and not run. */
  async #mayRun(): Promise<boolean> {
    const { admission, memory, record } = this.#state
    if (admission?.kind === 'rejected' && record.failed === undefined) {
      const { reason, message } = admission
      memory.change({ failed: { reason, message, admission: true } })
    }
    if (admission?.kind === 'admitted' && record.failed === undefined) {
      this.#deps.setStage('active')
      return true
    }
    // What has failed gives back its room first of all: the disk may be full of what it has written.
    await memory.save(memory.record.failed === undefined ? 'required' : 'best-effort')
    this.#deps.publishStatus()
    return false
  }
}
