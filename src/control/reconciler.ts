import type { NodeJobs } from './jobs/node-jobs.ts'
import type { ImageArchives } from './archives/image-archives.ts'
import type { AwaitedPods } from './desired/awaited-pods.ts'
import { notAskedYet } from './desired/awaited-pods.ts'
import type { DesiredPods } from './desired/desired-pods.ts'
import type { SourceSnapshots } from './desired/source-snapshots.ts'
import type { RuntimeKnowledge } from './runtime/runtime-knowledge.ts'
import type { NodeEventRecorder } from '../pod/state/pod-event.ts'
import type { PodUid } from '../pod/values/ids.ts'
import type { SourceSnapshot } from '../pod/objects/document.ts'

export interface ReconcilerParts {
  readonly snapshots: SourceSnapshots
  readonly desired: DesiredPods
  readonly awaited: AwaitedPods
  readonly knowledge: RuntimeKnowledge
  readonly archives: Pick<ImageArchives, 'recheck'> | undefined
  readonly node: { readonly jobs: Pick<NodeJobs, 'wake'>; readmitDrained(): void }
  /** Without a source, as in `podd down`, nothing says what is desired: pods are only ended on request. */
  readonly hasSources: boolean
  readonly events: NodeEventRecorder
}

/** Compares what the sources give with the pods that there are, as soon as both are known. */
export class Reconciler {
  readonly #parts: ReconcilerParts
  #runtimeProblem: string | undefined = notAskedYet
  #listed = false
  readonly #firstList = Promise.withResolvers<void>()
  #isToldGone = false
  /** The disk may have been full when podd started. */
  #hasCollected = false
  #objectsKnown = false
  /** All pods were reconciled with what the last merge gave. */
  #isReconciled = false

  constructor(parts: ReconcilerParts) {
    this.#parts = parts
  }

  /** Why the runtime can't be used for now. */
  get runtimeProblem(): string | undefined {
    return this.#runtimeProblem ?? this.#parts.knowledge.problem
  }

  /** The runtime answers, whatever it says of itself. */
  get isRuntimeUp(): boolean {
    return this.#runtimeProblem === undefined
  }

  /** The runtime says of itself that it can't be used, or that it can again. */
  takeReadiness(): void {
    this.#tell(this.runtimeProblem)
    for (const worker of this.#parts.desired.workers.all()) worker.wake()
  }

  /** The runtime was listed since podd began. */
  get listed(): boolean {
    return this.#listed
  }

  /** Resolves when the runtime was listed for the first time. */
  get whenListed(): Promise<void> {
    return this.#firstList.promise
  }

  /** Every source has given its objects. */
  get objectsKnown(): boolean {
    return this.#objectsKnown
  }

  /** What runs and what is desired. */
  get knowsAllPods(): boolean {
    return this.#listed && this.#parts.hasSources && this.#parts.snapshots.areReady
  }

  async takeSnapshot(snapshot: SourceSnapshot): Promise<void> {
    this.#parts.snapshots.take(snapshot)
    await this.#reconcile()
  }

  /** The runtime's health; undefined: it answered, and was listed. */
  async takeHealth(problem: string | undefined): Promise<void> {
    const { desired, awaited, knowledge, archives, node } = this.#parts
    const before = this.#runtimeProblem
    this.#runtimeProblem = problem
    this.#tell(this.runtimeProblem)
    if (problem === undefined && before !== undefined) {
      void knowledge.learn()
      archives?.recheck()
    }
    if (problem === undefined && !this.#listed) {
      this.#listed = true
      try {
        desired.takeObserved()
        await this.#reconcile()
      } finally {
        awaited.end((uid) => desired.workers.get(uid) !== undefined)
        this.#firstList.resolve()
      }
      node.jobs.wake('collect-orphans')
    }
    if (before !== problem) for (const worker of desired.workers.all()) worker.wake()
    if (problem !== undefined && !this.#listed) awaited.tell(problem)
  }

  /** One event for each loss of the runtime, however often its reason changes meanwhile. */
  #tell(problem: string | undefined): void {
    const wasTold = this.#isToldGone
    this.#isToldGone = problem !== undefined
    if (wasTold === this.#isToldGone) return
    const { events } = this.#parts
    if (problem === undefined)
      events.recordNode({
        type: 'Normal',
        reason: 'RuntimeAvailable',
        message: 'The container runtime can be used again',
      })
    else
      events.recordNode({
        type: 'Warning',
        reason: 'RuntimeUnavailable',
        message: `The container runtime cannot be used, running containers run on: ${problem}`,
      })
  }

  /** No pod is started before the runtime was listed: it may hold pods whose records are lost. */
  async #reconcile(): Promise<void> {
    const { snapshots, desired, awaited, node } = this.#parts
    const { wanted, changed, changedPods } = snapshots.merge()
    if (changed.size > 0) desired.reviewPullSecrets(changed)
    if (!this.#listed) return awaited.show(wanted)
    if (!this.#parts.hasSources) return
    const isKnown = this.#isReconciled
    this.#isReconciled = false
    if (isKnown && changedPods !== undefined) await desired.reconcileChanged(wanted, changedPods)
    else {
      await desired.reconcile(wanted, (record, key) => snapshots.mayRemove(record, key))
      desired.confirmAdopted((source) => snapshots.isSilent(source))
      node.readmitDrained()
      this.endOrphans()
    }
    desired.reviewEndedByDown((source) => snapshots.isSilent(source))
    this.#isReconciled = true
    // What waits for objects knows now that no more will come.
    if (!this.#objectsKnown && snapshots.areReady) for (const worker of desired.workers.all()) worker.wake()
    this.#objectsKnown = snapshots.areReady
    if (!this.#hasCollected && this.knowsAllPods) {
      this.#hasCollected = true
      node.jobs.wake('collect-images')
    }
  }

  /** The runtime reported a change of a pod without a worker. */
  takeUnrecorded(uid: PodUid): void {
    const { snapshots, desired } = this.#parts
    if (!this.#listed) return
    desired.reviewHeld()
    if (snapshots.areReady) desired.workers.endIfOrphan(uid)
  }

  /** Ends orphaned pods, once all sources have spoken. */
  endOrphans(): void {
    const { snapshots, desired } = this.#parts
    if (this.#listed && snapshots.areReady) desired.workers.endOrphans()
  }
}
