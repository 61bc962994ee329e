import { TurnPace } from '../base/clock.ts'
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/logger.ts'
import { WakeSlot } from '../base/waits.ts'
import type { Changes } from '../base/waits.ts'
import type { SourceSnapshot } from '../pod/objects/document.ts'
import type { NodeEventRecorder } from '../pod/state/pod-event.ts'
import type { PodUid } from '../pod/values/ids.ts'
import type { AwaitedPods } from './desired/awaited-pods.ts'
import type { DesiredPods } from './desired/desired-pods.ts'
import type { SourceSnapshots } from './desired/source-snapshots.ts'
import type { ImageArchives } from './images/archives.ts'
import type { NodeJobs } from './node/node-jobs.ts'
import type { NodeWork } from './node/node-work.ts'
import type { PodWorker } from './pod/worker.ts'
import type { RuntimeHealth } from './runtime/runtime-observer.ts'
import type { RuntimeKnowledge, SystemState } from './runtime/runtime-watch.ts'

/**
 * Everything that can happen, and who takes care of it:
 *
 * | kind       | comes from                | goes to                                              |
 * |------------|---------------------------|------------------------------------------------------|
 * | snapshot   | a source                  | `sources`, then all pods are brought in line          |
 * | runtime    | the runtime observer      | the worker of the pod it is about; orphans             |
 * | health     | the runtime observer      | every worker: go on, or say why not                    |
 * | stage      | a pod's worker            | desired pods: names and ports that became free        |
 * | probe      | the prober                | the worker of the pod it is about                     |
 * | pull       | the image puller          | the worker of the pod it is about, which shows it      |
 * | readiness  | what the runtime reports  | every worker: go on, or say why not                    |
 * | features   | what the runtime reports  | admission: pods may need what it can't do any more     |
 */
export type SyncEvent =
  | {
      readonly kind: 'snapshot'
      readonly snapshot: SourceSnapshot
      /** Called when it was handled, or the loop has ended; never throws. */
      readonly onTaken?: () => void
    }
  | { readonly kind: 'runtime'; readonly uid: PodUid }
  | { readonly kind: 'health'; readonly health: RuntimeHealth }
  | { readonly kind: 'stage'; readonly worker: PodWorker }
  | { readonly kind: 'probe'; readonly uid: PodUid }
  | { readonly kind: 'pull'; readonly uid: PodUid }
  | { readonly kind: 'readiness' }
  | { readonly kind: 'features' }

export type SyncHandlers = {
  readonly [Kind in SyncEvent['kind']]: (event: Extract<SyncEvent, { kind: Kind }>) => void | Promise<void>
}

/**
 * The loop: one event after another, in the order they came, each handed to its handler, which
 * decides at once and leaves all waiting to the pods' workers; one that decides about thousands of pods lets the rest of
 * podd have its turns meanwhile, and no other event is handled before it is done. So what it knows never changes under
 * its hands (`pkg/kubelet/kubelet.go` syncLoopIteration, Kubernetes 1.36).
 */
export class SyncLoop {
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #changes: Changes
  readonly #slot = new WakeSlot()
  #events: SyncEvent[] = []
  #waitsSinceMs: number | undefined
  #hasEnded = false

  /** @param changes noted after each event */
  constructor(clock: Clock, logger: Logger, changes: Changes) {
    this.#clock = clock
    this.#logger = logger
    this.#changes = changes
  }

  /** Since when the oldest event waits to be handled, monotonic; undefined where none does. */
  get waitsSinceMs(): number | undefined {
    return this.#waitsSinceMs
  }

  post(event: SyncEvent): void {
    if (this.#hasEnded) return settle(event)
    this.#waitsSinceMs ??= this.#clock.monotonicMs()
    this.#events.push(event)
    this.#slot.wake()
  }

  /** Hands each event to its handler until the signal is aborted; those that came before wait for this. */
  async run(handlers: SyncHandlers, signal: AbortSignal): Promise<void> {
    signal.addEventListener('abort', () => this.#slot.wake(), { once: true })
    while (!signal.aborted) {
      await this.#slot.wait()
      const events = this.#events
      this.#events = []
      this.#waitsSinceMs = undefined
      const pace = new TurnPace(this.#clock)
      for (const event of events) {
        if (pace.isOver) await pace.next()
        const work = this.#handle(handlers, event)
        if (work !== undefined) await work
        this.#changes.note()
      }
    }
    this.#hasEnded = true
    for (const event of this.#events.splice(0)) settle(event)
  }

  /** Gives a promise only where the handler takes more than this turn. Never throws. */
  #handle(handlers: SyncHandlers, event: SyncEvent): Promise<void> | undefined {
    const fail = (error: unknown): void =>
      this.#logger.error({ reason: event.kind, err: error }, 'event failed')
    try {
      const work = dispatch(handlers, event)
      if (work !== undefined) return work.catch(fail).finally(() => settle(event))
    } catch (error) {
      fail(error)
    }
    settle(event)
    return undefined
  }
}

function dispatch(handlers: SyncHandlers, event: SyncEvent): void | Promise<void> {
  switch (event.kind) {
    case 'snapshot':
      return handlers.snapshot(event)
    case 'runtime':
      return handlers.runtime(event)
    case 'health':
      return handlers.health(event)
    case 'stage':
      return handlers.stage(event)
    case 'probe':
      return handlers.probe(event)
    case 'pull':
      return handlers.pull(event)
    case 'readiness':
      return handlers.readiness(event)
    case 'features':
      return handlers.features(event)
  }
}

/** Whoever waits for the event goes on. */
function settle(event: SyncEvent): void {
  if (event.kind === 'snapshot') event.onTaken?.()
}

export interface ReconcilerParts {
  readonly state: SystemState
  readonly snapshots: SourceSnapshots
  readonly desired: DesiredPods
  readonly awaited: AwaitedPods
  readonly knowledge: RuntimeKnowledge
  readonly archives: Pick<ImageArchives, 'recheck'> | undefined
  readonly node: Pick<NodeWork, 'begin' | 'readmitDrained'> & { readonly jobs: Pick<NodeJobs, 'wake'> }
  /** Without a source, as in `podd down`, nothing says what is desired: pods are only ended on request. */
  readonly hasSources: boolean
  readonly events: NodeEventRecorder
}

/** Compares what the sources give with the pods that there are, as soon as both are known. */
export class Reconciler {
  readonly #parts: ReconcilerParts
  #isToldGone = false
  /** The disk may have been full when podd started. */
  #hasCollected = false
  /** All pods were reconciled with what the last merge gave. */
  #isReconciled = false

  constructor(parts: ReconcilerParts) {
    this.#parts = parts
  }

  /** The runtime says of itself that it can't be used, or that it can again. */
  takeReadiness(): void {
    this.#tell(this.#parts.knowledge.runtimeProblem)
    for (const worker of this.#parts.desired.workers.all()) worker.wake()
  }

  /** What runs and what is desired. */
  get knowsAllPods(): boolean {
    const { state, hasSources, snapshots } = this.#parts
    return state.isListed && hasSources && snapshots.areReady
  }

  /** Until every wanted pod had its turn, a pod without a worker may be one whose record was lost, to be adopted. */
  get knowsOrphans(): boolean {
    return this.knowsAllPods && this.#isReconciled
  }

  async takeSnapshot(snapshot: SourceSnapshot): Promise<void> {
    this.#parts.snapshots.take(snapshot)
    await this.#reconcile()
  }

  /** The runtime's health; undefined: it answered, and was listed. */
  async takeHealth(problem: string | undefined): Promise<void> {
    const { state, desired, awaited, knowledge, archives, node } = this.#parts
    const before = state.outage
    state.outage = problem
    this.#tell(this.#parts.knowledge.runtimeProblem)
    if (problem === undefined && before !== undefined) {
      void knowledge.learn()
      archives?.recheck()
    }
    if (problem === undefined && !state.isListed) {
      await node.begin()
      state.isListed = true
      try {
        desired.takeObserved()
        await this.#reconcile()
      } finally {
        awaited.end((uid) => desired.workers.get(uid) !== undefined)
        state.noteReconciled()
      }
      node.jobs.wake('collect-orphans')
    }
    if (before !== problem) for (const worker of desired.workers.all()) worker.wake()
    if (problem !== undefined && !state.isListed) awaited.tell(problem)
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
    const { state, snapshots, desired, awaited, node } = this.#parts
    const isKnown = this.#isReconciled
    this.#isReconciled = false
    const { wanted, changed, changedPods } = snapshots.merge()
    if (changed.size > 0) desired.reviewPullSecrets(changed)
    if (!state.isListed) return awaited.show(wanted)
    if (!this.#parts.hasSources) return
    if (isKnown && changedPods !== undefined) await desired.reconcileChanged(wanted, changedPods)
    else {
      await desired.reconcile(wanted, (record, key) => snapshots.mayRemove(record, key))
      desired.confirmAdopted((source) => snapshots.isSilent(source))
      node.readmitDrained()
      if (snapshots.areReady) desired.workers.endOrphans()
    }
    desired.reviewEndedByDown((source) => snapshots.isSilent(source))
    this.#isReconciled = true
    // What waits for objects knows now that no more will come.
    if (!state.objectsKnown && snapshots.areReady) for (const worker of desired.workers.all()) worker.wake()
    state.objectsKnown = snapshots.areReady
    if (!this.#hasCollected && this.knowsAllPods) {
      this.#hasCollected = true
      node.jobs.wake('collect-images')
    }
  }

  /** The runtime reported a change of a pod without a worker. */
  takeUnrecorded(uid: PodUid): void {
    const { state, desired } = this.#parts
    if (!state.isListed) return
    desired.reviewHeld()
    if (this.knowsOrphans) desired.workers.endIfOrphan(uid)
  }
}
