import type { Neighbour } from '../../decide/admission/admit-pod.ts'
import { HostTally } from '../../decide/admission/admit-pod.ts'
import { podKey } from '../../pod/values/ids.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { PodAdmission } from './pod-admission.ts'
import type { PodWorker } from '../worker/pod-worker.ts'
import type { PodWorkers } from './pod-workers.ts'

/** Admits pods one at a time, in the order they came, so that two never get the same last port. */
export class AdmissionQueue {
  readonly #workers: PodWorkers
  readonly #admission: PodAdmission
  readonly #promises: () => readonly Neighbour[]
  readonly #nextOf: (key: string) => Pod | undefined
  #isTogether = false
  /** Of the pods that hold something, and those for which something is kept, within `together`. */
  #shared: HostTally | undefined

  /**
   * @param promises what is kept for pods that don't run yet
   * @param nextOf the new version that waits to take a pod's place
   */
  constructor(
    workers: PodWorkers,
    admission: PodAdmission,
    {
      promises,
      nextOf,
    }: { readonly promises: () => readonly Neighbour[]; readonly nextOf: (key: string) => Pod | undefined },
  ) {
    this.#workers = workers
    this.#admission = admission
    this.#promises = promises
    this.#nextOf = nextOf
  }

  /** Decides on all pods that aren't admitted; called whenever resources may have become free. */
  review(): void {
    this.#admitAll(({ state }) => state.admission?.kind !== 'admitted')
    for (const worker of this.#workers.all()) this.judgeResize(worker)
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
    const own = podKey(worker.ref)
    const shared = this.#findShared(worker, own)
    const neighbours = {
      [Symbol.iterator]: () => this.#neighbours(worker)[Symbol.iterator](),
    }
    const admission = this.#admission.admit({
      pod,
      source: record.source,
      neighbours,
      tally: shared ?? new HostTally(neighbours),
      isAccepted: record.startedAtMs !== undefined,
      classes: record.classes,
    })
    worker.admit(admission)
    if (shared === undefined) this.noteChange()
    else if (worker.state.holdsResources) shared.add(this.#withNext(worker.state.asNeighbour()))
  }

  /** Undefined where the pod has a part in it itself. */
  #findShared(worker: PodWorker, own: string): HostTally | undefined {
    if (!this.#isTogether || worker.state.holdsResources) return undefined
    const promises = this.#promises()
    if (promises.some(({ key }) => key === own)) return undefined
    this.#shared ??= new HostTally(this.#neighbours(worker))
    return this.#shared
  }

  /** Runs before any other pod is admitted: what it reserves is not available to others. */
  judgeResize(worker: PodWorker): void {
    if (!worker.state.wantsToGrow) return
    const neighbours = this.#neighbours(worker)
    worker.judgeResize(this.#admission.refuseResize(worker.state.classedPod, neighbours))
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
