import type { PodObject } from '../../api/objects.ts'
import type { Clock } from '../../base/clock.ts'
import { deriveStatus } from '../../decide/status/derive-status.ts'
import type { Waiting } from '../../decide/plan/pod-action.ts'
import type { ProbeVerdicts } from '../../decide/plan/pod-facts.ts'
import type { PodUid } from '../../pod/values/ids.ts'
import type { PodHost } from '../actions/pod-host.ts'
import type { PassDeps } from './pod-executor.ts'
import { toPodObject } from '../status/pod-object.ts'
import type { PodState } from './pod-state.ts'

export interface PodDisplayDeps {
  readonly host: Pick<PodHost, 'hostIps' | 'hostName'>
  /** The newest of this pod. */
  readonly probes: () => ProbeVerdicts
  readonly publish: (uid: PodUid, object: PodObject | undefined) => void
  readonly clock: Clock
  /** `containerd` */
  readonly runtimeName: () => string
  readonly recursiveReadOnly: PassDeps['recursiveReadOnly']
  /** Undefined while the runtime can take calls; else why not. */
  readonly runtimeProblem: () => string | undefined
}

/** Shows one pod as it stands. */
export class PodDisplay {
  readonly #deps: PodDisplayDeps
  readonly #state: PodState
  #hidden = false

  constructor(deps: PodDisplayDeps, state: PodState) {
    this.#deps = deps
    this.#state = state
  }

  publish(): void {
    if (this.#hidden) return
    const { clock, host, probes, recursiveReadOnly, runtimeName } = this.#deps
    const { memory, pod, observed, waiting, resize, postStarts } = this.#state
    const { status, conditions, podIps } = deriveStatus({
      pod,
      record: memory.record,
      observed,
      probes: probes(),
      waiting,
      blocked: this.#whyNotStarted(),
      runtimeName: runtimeName(),
      hostIps: host.hostIps(),
      recursiveReadOnly: recursiveReadOnly(memory.record.classes?.runtimeHandler ?? ''),
      resize,
      postStarts,
      nowMs: clock.wallMs(),
    })
    if (conditions !== memory.record.conditions) memory.change({ conditions })
    if (podIps !== memory.record.podIps) memory.change({ podIps })
    const object = toPodObject(this.#state.classedPod, memory.record, { status, nodeName: host.hostName })
    this.#deps.publish(this.#state.ref.uid, object)
  }

  /** It is gone, or another pod bears its name: it is shown no more. */
  hide(): void {
    this.#hidden = true
    this.#deps.publish(this.#state.ref.uid, undefined)
  }

  #whyNotStarted(): Waiting | undefined {
    const { admission, lastError } = this.#state
    if (admission?.kind === 'blocked') return { reason: admission.reason, message: admission.message }
    const problem = this.#deps.runtimeProblem()
    if (problem !== undefined) return { reason: 'RuntimeNotReady', message: problem }
    return lastError === undefined ? undefined : { reason: 'FailedSync', message: lastError }
  }
}
