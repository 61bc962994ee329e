import type { Neighbour } from '../decide/admit-pod.ts'
import { podKey } from '../pod/ids.ts'
import type { PodAdmission } from './pod-admission.ts'
import type { PodWorker } from './pod-worker.ts'
import type { PodWorkers } from './pod-workers.ts'

/** Lets pods in one at a time, in the order they came, so that two never both believe to have got the last port. */
export class AdmissionQueue {
  readonly #workers: PodWorkers
  readonly #admission: PodAdmission
  readonly #promises: () => readonly Neighbour[]

  /** @param promises what is kept for pods that don't run yet */
  constructor(workers: PodWorkers, admission: PodAdmission, promises: () => readonly Neighbour[]) {
    this.#workers = workers
    this.#admission = admission
    this.#promises = promises
  }

  /** Decides about all that wait; called whenever room may have been made. */
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

  /** Before anybody else is let in: what it is given, others can't have. */
  judgeResize(worker: PodWorker): void {
    if (!worker.state.wantsToGrow) return
    const neighbours = this.#neighbours(worker)
    worker.judgeResize(this.#admission.refuseResize(worker.state.classedPod, neighbours))
  }

  #neighbours(worker: PodWorker): readonly Neighbour[] {
    const own = podKey(worker.ref)
    return [...this.#workers.neighbours(worker), ...this.#promises().filter(({ key }) => key !== own)]
  }

  #admitAll(isMeant: (worker: PodWorker) => boolean): void {
    for (const worker of this.#workers.all()) {
      const { admission, stage, record } = worker.state
      const isDecided = admission?.kind === 'admitted' || admission?.kind === 'rejected'
      if (isDecided || stage !== 'waiting' || record.failed !== undefined) continue
      if (isMeant(worker)) this.admit(worker)
    }
  }
}
