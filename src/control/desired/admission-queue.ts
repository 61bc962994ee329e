import type { Neighbour } from '../../decide/admission/admit-pod.ts'
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

  /** Decides on all waiting pods; called whenever resources may have become free. */
  review(): void {
    this.#admitAll(() => true)
    for (const worker of this.#workers.all()) this.judgeResize(worker)
  }

  /** Decides about those alone that ran before: these have their room. */
  reviewStarted(): void {
    this.#admitAll((worker) => worker.state.record.startedAtMs !== undefined)
  }

  admit(worker: PodWorker): void {
    const { pod, record } = worker.state
    const admission = this.#admission.admit({
      pod,
      source: record.source,
      neighbours: this.#neighbours(worker),
      isAccepted: record.startedAtMs !== undefined,
      classes: record.classes,
    })
    worker.admit(admission)
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
    return [...others, ...promised].map((each) => Object.assign(each, { next: this.#nextOf(each.key) }))
  }

  #admitAll(isMeant: (worker: PodWorker) => boolean): void {
    for (const worker of this.#workers.all()) {
      const { admission, isWaiting, record } = worker.state
      const isDecided = admission?.kind === 'admitted' || admission?.kind === 'rejected'
      if (isDecided || !isWaiting || record.failed !== undefined) continue
      if (isMeant(worker)) this.admit(worker)
    }
  }
}
