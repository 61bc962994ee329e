import { HostTally } from '../../decide/admission/admit-pod.ts'
import type { Neighbour } from '../../decide/admission/admit-pod.ts'
import { decideUnrecorded } from '../../decide/sources/new-pod-record.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { ObservedPod } from '../../pod/state/observed.ts'
import { podKey } from '../../pod/values/ids.ts'
import type { PodKey, PodUid } from '../../pod/values/ids.ts'
import type { EndedByDown, UnreadableRecord } from '../../store/pod-records.ts'
import type { PodWorker } from '../pod/worker.ts'
import type { RuntimeObserver } from '../runtime/runtime-observer.ts'
import type { PodAdmission } from './pod-admission.ts'

/** The pods that ran when `podd down` ended them and are still to start: they come before others that want the same. */
export type EndedPods = Map<PodKey, { readonly ended: EndedByDown; readonly pod: Pod }>

/** The workers of all pods that are not removed yet, including those being replaced, in the order of their addition. */
export class PodWorkers {
  readonly #observer: RuntimeObserver
  readonly #workers = new Map<PodUid, PodWorker>()
  /** Those of each name, in the order of their addition. */
  readonly #named = new Map<PodKey, Set<PodWorker>>()
  readonly #unreadable = new Map<PodUid, UnreadableRecord>()

  constructor(observer: RuntimeObserver) {
    this.#observer = observer
  }

  get(uid: PodUid): PodWorker | undefined {
    return this.#workers.get(uid)
  }

  all(): Iterable<PodWorker> {
    return this.#workers.values()
  }

  /** @throws where another worker has its UID, after which records, sandboxes and volumes are named */
  add(uid: PodUid, make: () => PodWorker): PodWorker {
    const before = this.#workers.get(uid)
    if (before !== undefined && before.state.stage !== 'gone')
      throw new Error(`there is a worker of the pod with the UID ${uid} already`)
    const worker = make()
    if (before !== undefined) this.#unindex(before)
    this.#workers.set(worker.ref.uid, worker)
    const key = podKey(worker.ref)
    const named = this.#named.get(key)
    if (named === undefined) this.#named.set(key, new Set([worker]))
    else named.add(worker)
    return worker
  }

  #unindex(worker: PodWorker): void {
    const key = podKey(worker.ref)
    const named = this.#named.get(key)
    named?.delete(worker)
    if (named?.size === 0) this.#named.delete(key)
  }

  /** The oldest one of this name. */
  find(key: PodKey): PodWorker | undefined {
    const [worker] = this.#named.get(key) ?? []
    return worker
  }

  forget(worker: PodWorker): void {
    const { uid } = worker.ref
    if (this.#workers.get(uid) !== worker) return
    this.#workers.delete(uid)
    this.#unindex(worker)
  }

  /** What pods have of the host, all or those beside one. */
  neighbours(self?: PodWorker): Neighbour[] {
    return [...this.#workers.values()]
      .filter((worker) => worker !== self && worker.state.holdsResources)
      .map(({ state }) => state.asNeighbour())
  }

  /** Pods of the same name that were stopped and not yet cleared away. */
  predecessors({ ref }: PodWorker): PodWorker[] {
    return [...(this.#named.get(podKey(ref)) ?? [])].filter(
      (worker) => worker.state.stage === 'stopped' && worker.ref.uid !== ref.uid,
    )
  }

  /** The runtime was listed for the first time: from now on it is known what runs of the adopted pods. */
  takeObserved(): void {
    const observed = this.#observer.pods()
    for (const worker of this.#workers.values()) {
      const seen = observed.get(worker.ref.uid)
      if (seen !== undefined) worker.takeObserved(seen)
    }
  }

  /** A pod of this name that the runtime holds although its record is lost. */
  findUnrecorded(key: PodKey): ObservedPod | undefined {
    return this.#observer.podsNamed(key).find(({ uid }) => !this.#workers.has(uid))
  }

  /** What the runtime holds without a worker. */
  unrecorded(): readonly ObservedPod[] {
    return [...this.#observer.pods().values()].filter(({ uid }) => !this.#workers.has(uid))
  }

  /** These records can't be read: what runs of their pods is no orphan. */
  noteUnreadable(records: readonly UnreadableRecord[]): void {
    for (const record of records) this.#unreadable.set(record.uid, record)
  }

  isRecorded(uid: PodUid): boolean {
    return this.#workers.has(uid) || this.#unreadable.has(uid)
  }

  fateOf(observed: ObservedPod, isWanted: boolean): ReturnType<typeof decideUnrecorded> {
    return decideUnrecorded({ observed, isUnreadable: this.#unreadable.has(observed.uid), isWanted })
  }

  /** The pods that run and are left alone because their records can't be read. */
  leftAlone(): readonly { readonly key: PodKey; readonly record: UnreadableRecord }[] {
    return this.unrecorded().flatMap((observed) => {
      const record = this.#unreadable.get(observed.uid)
      if (record === undefined || this.fateOf(observed, false) !== 'leave') return []
      return [{ key: podKey(observed), record }]
    })
  }

  /** Whether a pod without a worker runs and its record can't be read. */
  get leavesAny(): boolean {
    return this.#unreadable.size > 0
  }

  /** Stops all workers and leaves the pods running; resolves when every pass in flight has stopped too. */
  async stop(): Promise<void> {
    await Promise.all([...this.#workers.values()].map((worker) => worker.stop()))
  }
}

/** What all pods have of the host, within `together`. */
interface SharedTally {
  readonly tally: HostTally
  /** Of each pod that holds something, its part in it. */
  readonly parts: Map<PodWorker, Neighbour>
  /** The names for which something is kept, which has a part in it too. */
  readonly promised: ReadonlySet<string>
}

/** Admits pods one at a time, in the order they came, so that two never get the same last port. */
export class AdmissionQueue {
  readonly #workers: PodWorkers
  readonly #admission: PodAdmission
  readonly #promises: () => readonly Neighbour[]
  readonly #nextOf: (key: string) => Pod | undefined
  #isTogether = false
  #shared: SharedTally | undefined

  /**
   * @param promises what is kept for pods that don't run yet
   * @param nextOf the new version that waits to take a pod's place
   */
  constructor(
    workers: PodWorkers,
    admission: PodAdmission,
    promises: () => readonly Neighbour[],
    nextOf: (key: string) => Pod | undefined,
  ) {
    this.#workers = workers
    this.#admission = admission
    this.#promises = promises
    this.#nextOf = nextOf
  }

  /** Decides on all pods that aren't admitted; called whenever resources may have become free. */
  review(): void {
    this.#admitAll(({ state }) => state.admission?.kind !== 'admitted')
    for (const worker of this.#workers.all()) this.reviewResize(worker)
  }

  /** Decides only about pods that ran before, as these keep their resources; also about those that are admitted. */
  reviewStarted(): void {
    this.#admitAll((worker) => worker.state.record.startedAtMs !== undefined)
  }

  /**
   * What pods have of the host is gathered once for all that `work` admits. What else changes it meanwhile is to be told by
   * `noteChange`.
   */
  together(work: () => void): void {
    this.#isTogether = true
    try {
      work()
    } finally {
      this.#isTogether = false
      this.#shared = undefined
    }
  }

  noteChange(): void {
    this.#shared = undefined
  }

  admit(worker: PodWorker): void {
    const { pod, record } = worker.state
    // What has ended asks for nothing any more.
    if (record.startedAtMs !== undefined && worker.state.hasEnded) return worker.admit({ kind: 'admitted' })
    const shared = this.#findShared(worker)
    const part = shared?.parts.get(worker)
    if (part !== undefined) shared?.tally.remove(part)
    const neighbours = {
      [Symbol.iterator]: () => this.#neighbours(worker)[Symbol.iterator](),
    }
    const admission = this.#admission.admit({
      pod,
      source: record.source,
      neighbours,
      tally: shared?.tally ?? new HostTally(neighbours),
      isAccepted: record.startedAtMs !== undefined,
      classes: record.classes,
    })
    worker.admit(admission)
    if (shared === undefined) this.noteChange()
    else this.#addPart(shared, worker)
  }

  /** Undefined where something is kept for the pod. */
  #findShared(worker: PodWorker): SharedTally | undefined {
    if (!this.#isTogether) return undefined
    if (this.#shared === undefined) {
      const promises = this.#promises()
      const tally = new HostTally(promises.map((each) => this.#withNext(each)))
      this.#shared = { tally, parts: new Map(), promised: new Set(promises.map(({ key }) => key)) }
      for (const each of this.#workers.all()) this.#addPart(this.#shared, each)
    }
    return this.#shared.promised.has(podKey(worker.ref)) ? undefined : this.#shared
  }

  #addPart({ tally, parts }: SharedTally, worker: PodWorker): void {
    parts.delete(worker)
    if (!worker.state.holdsResources) return
    const part = this.#withNext(worker.state.asNeighbour())
    parts.set(worker, part)
    tally.add(part)
  }

  /** Runs before any other pod is admitted: what it reserves is not available to others. */
  reviewResize(worker: PodWorker): void {
    if (!worker.state.wantsToGrow) return
    const neighbours = this.#neighbours(worker)
    worker.takeResizeVerdict(this.#admission.refuseResize(worker.state.classedPod, neighbours))
  }

  #neighbours(worker: PodWorker): readonly Neighbour[] {
    const own = podKey(worker.ref)
    const others = this.#workers.neighbours(worker)
    const promised = this.#promises().filter(({ key }) => key !== own)
    return [...others, ...promised].map((each) => this.#withNext(each))
  }

  #withNext(neighbour: Neighbour): Neighbour {
    return Object.assign(neighbour, { next: this.#nextOf(neighbour.key) })
  }

  #admitAll(isMeant: (worker: PodWorker) => boolean): void {
    this.together(() => {
      for (const worker of this.#workers.all()) {
        const { stage, admission, record } = worker.state
        if (admission?.kind === 'rejected' || record.failed !== undefined) continue
        if (stage === 'ending' || stage === 'stopped' || stage === 'gone') continue
        if (isMeant(worker)) this.admit(worker)
      }
    })
  }
}
