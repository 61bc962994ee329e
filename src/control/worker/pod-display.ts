import type { PodObject } from '../../api/objects.ts'
import { formatTime } from '../../base/clock.ts'
import type { Clock } from '../../base/clock.ts'
import { isJsonObject } from '../../base/json.ts'
import { goesAwayAfter } from '../../decide/plan/pod-ending.ts'
import { podGeneration } from '../../decide/status/pod-generation.ts'
import type { PodRecord } from '../../pod/state/pod-record.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { PodStatus } from '../../pod/state/status.ts'
import { deriveStatus } from '../../decide/status/derive-status.ts'
import type { DerivedStatus } from '../../decide/status/derive-status.ts'
import type { Waiting } from '../../decide/plan/pod-action.ts'
import type { ProbeVerdicts } from '../../decide/plan/pod-facts.ts'
import type { PodUid } from '../../pod/values/ids.ts'
import type { ImagePuller } from '../images/image-puller.ts'
import type { PodHost } from '../actions/pod-host.ts'
import type { PassDeps } from './pod-executor.ts'
import type { PodState } from './pod-state.ts'

export interface PodDisplayDeps {
  readonly host: Pick<PodHost, 'hostIps' | 'hostName'>
  /** The newest of this pod. */
  readonly probes: () => ProbeVerdicts
  /** Undefined takes the pod out of what is shown. Throws what a subscriber throws. */
  readonly publish: (uid: PodUid, object: PodObject | undefined) => void
  readonly clock: Clock
  /** `containerd` */
  readonly runtimeName: () => string
  readonly recursiveReadOnly: PassDeps['recursiveReadOnly']
  /** Undefined while the runtime can take calls; else why not. */
  readonly runtimeProblem: () => string | undefined
  readonly images: ImagePuller
}

/** How one pod is shown, and what of that is to be recorded. */
export interface PodView {
  /** Of two views the one with the higher number is newer. */
  readonly number: number
  readonly object: PodObject
  readonly recordChange: DerivedStatus['recordChange']
}

/** Shows one pod as it stands. Changes nothing of it. */
export class PodDisplay {
  readonly #deps: PodDisplayDeps
  readonly #state: Readonly<PodState>
  #hidden = false
  #derived = 0
  /** The number of the view that is shown. */
  #shown = 0

  constructor(deps: PodDisplayDeps, state: Readonly<PodState>) {
    this.#deps = deps
    this.#state = state
  }

  /** Undefined once the pod is shown no more. */
  derive(): PodView | undefined {
    if (this.#hidden) return undefined
    const { clock, host, images, probes, recursiveReadOnly, runtimeName } = this.#deps
    const { memory, pod, observed, waiting, resize, postStarts } = this.#state
    const { status, recordChange } = deriveStatus({
      pod,
      record: memory.record,
      observed,
      probes: probes(),
      waiting,
      pulling: images.pulling(this.#state.ref.uid),
      blocked: this.#whyNotStarted(),
      runtimeName: runtimeName(),
      hostIps: host.hostIps(),
      recursiveReadOnly: recursiveReadOnly(memory.record.classes?.runtimeHandler ?? ''),
      resize,
      postStarts,
      nowMs: clock.wallMs(),
    })
    const object = toPodObject(this.#state.classedPod, memory.record, { status, nodeName: host.hostName })
    this.#derived += 1
    return { number: this.#derived, object, recordChange }
  }

  /** One that is older than what is shown is not. */
  show({ number, object }: PodView): void {
    if (this.#hidden || number < this.#shown) return
    this.#shown = number
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

/** A pod as the API shows it: the manifest's spec as written with what its classes added, podd's metadata, the derived status. */
export function toPodObject(
  pod: Pod,
  record: PodRecord,
  { status, nodeName }: { readonly status: PodStatus; readonly nodeName: string },
): PodObject {
  const { metadata } = pod
  const spec = record.manifest['spec']
  const { ending } = record
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: metadata.name,
      namespace: metadata.namespace,
      uid: record.uid,
      generation: podGeneration(record),
      creationTimestamp: formatTime(record.acceptedAtMs),
      // One that is ended to stay, as failed, isn't being deleted.
      ...(ending === undefined || !goesAwayAfter(ending)
        ? {}
        : {
            deletionTimestamp: formatTime(ending.requestedAtMs + ending.graceSeconds * 1000),
            deletionGracePeriodSeconds: Math.round(ending.graceSeconds),
          }),
      ...(Object.keys(metadata.labels).length === 0 ? {} : { labels: metadata.labels }),
      annotations: {
        ...metadata.annotations,
        'podd.dev/source': record.source,
        'podd.dev/path': record.path,
      },
    },
    spec: {
      ...(isJsonObject(spec) ? spec : {}),
      ...(pod.spec.overhead === undefined ? {} : { overhead: pod.spec.overhead }),
      ...(pod.spec.priority === undefined ? {} : { priority: pod.spec.priority }),
      nodeName,
    },
    status,
  }
}
