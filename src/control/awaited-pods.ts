import type { Clock } from '../base/clock.ts'
import { newUuid } from '../base/random.ts'
import { deriveStatus } from '../decide/derive-status.ts'
import { newPodRecord } from '../decide/new-pod-record.ts'
import type { Waiting } from '../decide/pod-action.ts'
import type { PodKey, PodUid } from '../pod/ids.ts'
import { podKey } from '../pod/ids.ts'
import type { PodRecord } from '../pod/pod-record.ts'
import type { Pod } from '../pod/schema/pod-schema.ts'
import type { WantedPod } from './desired-pods.ts'
import type { PodHost } from './pod-host.ts'
import { toPodObject } from './pod-object.ts'
import type { PodWorker } from './pod-worker.ts'
import type { StatusStore } from './status-store.ts'

export interface AwaitedPodsDeps {
  readonly statuses: StatusStore
  /** Those of an earlier podd. */
  readonly adopted: () => Iterable<Pick<PodWorker, 'state'>>
  readonly host: Pick<PodHost, 'hostIps' | 'hostName'>
  readonly clock: Clock
  readonly runtimeName: () => string
}

interface Shown {
  readonly pod: Pod
  readonly record: PodRecord
  readonly hasEnded: boolean
}

const notAskedYet = 'waiting for the container runtime'

/**
 * Shows pods while nobody knows what the runtime holds, so that a runtime that never comes up doesn't look like a host
 * without pods: those that are wanted and can't be begun yet; and, once the runtime is known to be in trouble, those of
 * an earlier podd with what is on record of them. (They run most likely, and are not to look down when podd starts.)
 */
export class AwaitedPods {
  readonly #deps: AwaitedPodsDeps
  #records: ReadonlyMap<PodKey, PodRecord> = new Map()
  #wanted: ReadonlyMap<PodKey, WantedPod> = new Map()
  readonly #sinceMs: number
  #problem: string | undefined

  constructor(deps: AwaitedPodsDeps) {
    this.#deps = deps
    this.#sinceMs = deps.clock.wallMs()
  }

  /** These are wanted by now. */
  show(wanted: ReadonlyMap<PodKey, WantedPod>): void {
    const before = this.#records
    const adopted = new Set([...this.#deps.adopted()].map(({ state }) => podKey(state.ref)))
    const records = new Map<PodKey, PodRecord>()
    for (const [key, { document, source }] of wanted) {
      if (adopted.has(key)) continue
      const known = before.get(key)
      const fresh = {
        uid: known?.uid ?? newUuid(),
        nowMs: known?.acceptedAtMs ?? this.#deps.clock.wallMs(),
        createdAtMs: undefined,
      }
      records.set(key, newPodRecord({ ...fresh, document, source }))
    }
    for (const [key, { uid }] of before) if (!records.has(key)) this.#deps.statuses.remove(uid)
    this.#records = records
    this.#wanted = wanted
    this.#publishAll()
  }

  /** Why the runtime can't be listed. */
  tell(problem: string): void {
    this.#problem = problem
    this.#publishAll()
  }

  /** The UID under which a pod was shown, which is to stay its own. */
  uidOf(key: PodKey): PodUid | undefined {
    return this.#records.get(key)?.uid
  }

  /** The runtime was listed: what was not begun by now is shown no more. */
  end(isBegun: (uid: PodUid) => boolean): void {
    for (const { uid } of this.#records.values()) if (!isBegun(uid)) this.#deps.statuses.remove(uid)
    this.#records = new Map()
    this.#wanted = new Map()
  }

  #publishAll(): void {
    for (const { state } of this.#problem === undefined ? [] : this.#deps.adopted())
      this.#publish({ pod: state.classedPod, record: state.record, hasEnded: state.hasEnded })
    for (const [key, record] of this.#records) {
      const pod = this.#wanted.get(key)?.document.pod
      if (pod !== undefined) this.#publish({ pod, record, hasEnded: false })
    }
  }

  #publish({ pod, record, hasEnded }: Shown): void {
    const { host, runtimeName, statuses } = this.#deps
    const { uid, namespace, name } = record
    const blocked: Waiting = { reason: 'RuntimeNotReady', message: this.#problem ?? notAskedYet }
    const { initContainers, containers } = pod.spec
    const names = hasEnded ? [] : [...initContainers, ...containers].map((spec) => spec.name)
    const { status } = deriveStatus({
      pod,
      record,
      observed: { uid, namespace, name, sandboxes: [], containers: [] },
      probes: () => undefined,
      waiting: new Map(names.map((container) => [container, blocked])),
      blocked,
      runtimeName: runtimeName(),
      hostIps: host.hostIps(),
      nowMs: this.#sinceMs,
    })
    statuses.publish(uid, toPodObject(pod, record, { status, nodeName: host.hostName }))
  }
}
