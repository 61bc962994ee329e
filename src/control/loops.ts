import type { PodObject } from '../api/resource.ts'
import { readClocks, SharedTurns, TurnPace } from '../base/clock.ts'
import type { Timer } from '../base/clock.ts'
import { Changes } from '../base/waits.ts'
import type { PoddConfig } from '../config/options.ts'
import type { ContainerGarbagePolicy } from '../decide/node/plan-container-garbage.ts'
import { backoffLimits } from '../decide/plan/backoff.ts'
import { podKey } from '../pod/values/ids.ts'
import type { SourceName } from '../pod/values/ids.ts'
import type { RunProbe } from '../probes/run-probe.ts'
import type { ImageService, RuntimeService } from '../runtime/cri-runtime.ts'
import type { PodRecordStore } from '../store/pod-records.ts'
import type { RevisionStore } from '../store/revisions.ts'
import { createStateReport } from '../store/state-report.ts'
import type { SmallFile } from '../store/state-report.ts'
import { AwaitedPods } from './desired/awaited-pods.ts'
import { DesiredPods } from './desired/desired-pods.ts'
import { PodAdmission } from './desired/pod-admission.ts'
import type { AdmissionRules } from './desired/pod-admission.ts'
import { PodWorkers } from './desired/pod-workers.ts'
import type { EndedPods } from './desired/pod-workers.ts'
import { ServiceNames } from './desired/service-names.ts'
import { SourceSnapshots } from './desired/source-snapshots.ts'
import { UpdateGate } from './desired/update-gate.ts'
import { Workloads } from './desired/workloads.ts'
import type { ImageArchives } from './images/archives.ts'
import type { ImageCredentials } from './images/image-access.ts'
import { ImageGarbage } from './images/image-garbage.ts'
import { createImagePuller } from './images/image-puller.ts'
import { listNamedImages } from './images/image-uses.ts'
import type { PullContent } from './images/pull-watch.ts'
import { NodeWork } from './node/node-work.ts'
import type { NodeSetup } from './node/node-work.ts'
import type { PodEnv } from './pod/env.ts'
import type { PodHost } from './pod/host.ts'
import { Prober } from './pod/prober.ts'
import { RuntimeObserver } from './runtime/runtime-observer.ts'
import type { RuntimeEventSource } from './runtime/runtime-observer.ts'
import { hostStood, poddStood, RuntimeKnowledge, RuntimeWatch, SystemState } from './runtime/runtime-watch.ts'
import type { RuntimePulse } from './runtime/runtime-watch.ts'
import type { RingEventRecorder } from './serving/event-recorder.ts'
import type { ObjectStore } from './serving/object-store.ts'
import { PodCounters } from './serving/pod-counters.ts'
import type { ShownResources } from './serving/resource-store.ts'
import { StatusStore } from './serving/status-store.ts'
import { TroubleLog } from './serving/trouble-log.ts'
import { SyncLoop } from './sync-loop.ts'
import type { SyncEvent, SyncHandlers } from './sync-loop.ts'

/** For how long after its boot a host is busy with that. */
const bootMs = 600_000
/** A loss of the runtime that lasts longer is not ordinary: systemd gives a unit 90 s to start (`DefaultTimeoutStartSec`). */
const ordinaryLossMs = 120_000

/** Everything outside of the loops. Made at one place (`assemble.ts`). */
export interface SystemEnv extends Pick<PodEnv, 'clock' | 'random' | 'logger' | 'runtimeName'> {
  readonly events: PodEnv['events'] & Pick<RingEventRecorder, 'reviewTimes'>
  readonly host: PodHost
  /** Empty; the sources fill it. */
  readonly objects: ObjectStore
  readonly runtime: RuntimeService
  readonly pulse: RuntimePulse
  /** The runtime has been silent for so long that it isn't waited for any more; undefined where it is somebody else's. */
  readonly onRuntimeSilence: ((silentMs: number) => void) | undefined
  /** Undefined where the runtime serves no events. */
  readonly runtimeEvents: RuntimeEventSource | undefined
  readonly images: ImageService
  readonly credentials: ImageCredentials
  /** Undefined where the runtime alone gives up pulls that hang. */
  readonly pullContent: PullContent | undefined
  readonly archives: Pick<ImageArchives, 'problems' | 'recheck' | 'run'>
  readonly records: PodEnv['records'] & Pick<PodRecordStore, 'load' | 'loadEndedByDown' | 'saveEndedByDown'>
  readonly revisions: RevisionStore
  /** What Jobs and CronJobs have done. */
  readonly batchFile: SmallFile
  readonly shown: ShownResources
  /** What is shown of a pod, where that is more than its manifest and its status say. */
  readonly presentPod: ((object: PodObject) => PodObject) | undefined
  readonly runProbe: RunProbe
  /** The sources that are configured: none of their pods goes before all have spoken. */
  readonly sources: readonly SourceName[]
  readonly settings: PoddConfig
  readonly admission: AdmissionRules
  readonly containerPolicy: ContainerGarbagePolicy
  readonly node: NodeSetup
}

/** The control loops, each with what it needs of the others. None runs yet. */
export type Loops = ReturnType<typeof createLoops>

/**
 * Constructs the loops in the order in which they need each other. Whoever has to tell something to what comes later posts an
 * event.
 */
export function createLoops(system: SystemEnv) {
  const { clock, random, logger, events, host, settings, objects, records, runtimeName } = system
  const changes = new Changes()
  const statuses = new StatusStore(system.shown.pods, system.presentPod)
  const counters = new PodCounters(clock)
  counters.follow(system.shown.pods)
  const troubles = new TroubleLog(logger)
  troubles.follow(system.shown.pods)
  const state = new SystemState()
  const loop = new SyncLoop(clock, logger, changes)
  const post = (event: SyncEvent): void => loop.post(event)
  const observer = new RuntimeObserver({
    calls: system.runtime,
    events: system.runtimeEvents,
    clock,
    random,
    logger,
    instance: host.instance,
    relistMs: settings.syncFrequencyMs,
    hasOomKills: (uid, containerId) => host.cgroups.hasOomKills(uid, containerId),
    onChange: (uid) => post({ kind: 'runtime', uid }),
    onHealth: (problem) => post({ kind: 'health', problem }),
  })
  const prober = new Prober({
    clock,
    random,
    runProbe: system.runProbe,
    events,
    onResult: ({ uid }) => post({ kind: 'probe', uid }),
  })
  const knowledge = new RuntimeKnowledge(system.runtime, state, clock, logger, {
    onLearnt: () => post({ kind: 'features' }),
    onReadiness: () => post({ kind: 'readiness' }),
    isOwnRuntime: system.onRuntimeSilence !== undefined,
  })
  const watch = new RuntimeWatch({
    clock,
    pulse: system.pulse,
    // The first report of the loss has the better reason.
    onGap: (message) => observer.reportGone(knowledge.runtimeProblem ?? message),
    onClockSet: () => {
      events.reviewTimes()
      const now = readClocks(clock)
      for (const worker of workers.all()) worker.reviewClock(now)
      if (!state.isListed) awaited.reviewClock()
      workloads.reviewClock()
    },
    onSilence: system.onRuntimeSilence,
  })
  const workers = new PodWorkers(observer)
  const endedByDown: EndedPods = new Map()
  const podNameSuffix = settings.podNameSuffix === 'node' ? `-${host.hostName}` : ''
  const rules = { sources: system.sources, podNameSuffix, maxPods: settings.maxPods }
  const workloads = new Workloads({
    clock,
    logger,
    statuses,
    workers,
    podNameSuffix,
    proofMs: settings.updateMinReadyMs,
    shown: system.shown,
    events,
    batch: { file: system.batchFile, report: createStateReport(events, logger) },
    isRuntimeKnown: () => state.isListed && knowledge.runtimeProblem === undefined,
    failureOf: (source, document) => gate.failureOf(source, document),
    onChange: (source) => post({ kind: 'update', source }),
  })
  const snapshots = new SourceSnapshots(rules, objects, workers, endedByDown)
  const knowsAllPods = (): boolean => state.isListed && snapshots.areReady
  const imageGarbage = new ImageGarbage({
    ...system.node.imageGarbage,
    report: createStateReport(events, logger),
    namedImages: () =>
      knowsAllPods()
        ? [
            ...listNamedImages(workers.all(), [...snapshots.all(), ...gate.fallbacks()]),
            ...gate.imagesToGoBackTo(),
            ...workloads.imagesToCome(),
          ]
        : undefined,
    clock,
    logger,
  })
  const images = createImagePuller(system, imageGarbage, {
    onPulling: (uid) => post({ kind: 'pull', uid }),
    wentBack: (pod, container) => gate.wentBack(podKey(pod), container),
  })
  const services = new ServiceNames({
    ...host,
    objects,
    workers,
    statuses,
    shown: system.shown,
    state,
    sources: system.sources,
    awaitsObjects: (source) => snapshots.awaitsObjects(source),
    clock,
    logger,
  })
  const env: PodEnv = {
    ...host,
    serviceNames: (pod, source) => services.hostsSection(pod, source),
    awaitsServices: (source, uid) => services.startBlock(source, uid),
    serviceVariables: (pod, source) => services.variables(pod, source),
    noteHostsFile: (uid) => services.noteStart(uid),
    clock,
    random,
    logger,
    events,
    records,
    images,
    observer,
    knowledge,
    prober,
    statuses,
    counters,
    changes,
    turns: new SharedTurns(clock),
    limits: backoffLimits(settings.maxContainerRestartPeriodMs),
    containerPolicy: system.containerPolicy,
    runtimeName,
    runtimeLosses: () => {
      watch.look()
      return observer.losses
    },
    system: state,
  }
  const node = new NodeWork(env, system.node, settings, imageGarbage, {
    workers: () => workers.all(),
    knowsAllPods,
    isRemoved: (pod) => workers.fateOf(pod, false) === 'end',
    endOrphans: () => post({ kind: 'orphans' }),
    readmit: (now) => post({ kind: 'readmit', now }),
    reviewAdmission: () => post({ kind: 'room' }),
    reviewSources: () => {
      for (const { source } of snapshots.withRoom()) post({ kind: 'update', source })
    },
  })
  host.shutdown.onChange(() => post({ kind: 'shutdown' }))
  const awaited = new AwaitedPods(env, workers)
  const admission = new PodAdmission(
    system.admission,
    objects,
    () => knowledge.features,
    (pod) => node.refusal(pod),
  )
  const desired = new DesiredPods(env, workers, admission, awaited, endedByDown, (worker) =>
    post({ kind: 'stage', worker }),
  )
  const gate = new UpdateGate(env, system.revisions, settings, desired, workloads, (source) =>
    post({ kind: 'update', source }),
  )
  statuses.presentAlso((object) => gate.present(object))
  return {
    changes,
    statuses,
    counters,
    troubles,
    state,
    loop,
    observer,
    watch,
    prober,
    knowledge,
    images,
    workers,
    gate,
    snapshots,
    workloads,
    services,
    awaited,
    desired,
    node,
  }
}

/** What is done about each event. Compares what the sources give with the pods that there are, as soon as both are known. */
export class Reconciler implements SyncHandlers {
  readonly #env: SystemEnv
  readonly #loops: Loops
  /** How the loss of the runtime that lasts was told; undefined while it can be used. */
  #toldLoss:
    | { readonly type: 'Normal' | 'Warning'; readonly sinceMs: number; readonly patience: Timer | undefined }
    | undefined
  /** The disk may have been full when podd started. */
  #hasCollected = false
  /** All pods were reconciled with what the last merge gave. */
  #isReconciled = false

  constructor(env: SystemEnv, loops: Loops) {
    this.#env = env
    this.#loops = loops
  }

  async snapshot({ snapshot }: SyncEvent<'snapshot'>): Promise<void> {
    const { gate, workloads, snapshots } = this.#loops
    // Each step looks at all that the source gives.
    const pace = new TurnPace(this.#env.clock)
    const active = await gate.take(snapshot)
    if (pace.isOver) await pace.next()
    snapshots.take(await workloads.expand(active))
    if (pace.isOver) await pace.next()
    await this.#reconcile()
  }

  async update({ source }: SyncEvent<'update'>): Promise<void> {
    const { gate, workloads, snapshots } = this.#loops
    const active = gate.compose(source)
    if (active === undefined) return
    snapshots.take(await workloads.expand(active))
    await this.#reconcile()
  }

  runtime({ uid }: SyncEvent<'runtime'>): void {
    const { state, workers, desired } = this.#loops
    const worker = workers.get(uid)
    if (worker !== undefined) return worker.notice()
    if (!state.isListed) return
    desired.reviewHeld()
    if (this.#knowsOrphans) desired.endIfOrphan(uid)
  }

  async health({ problem }: SyncEvent<'health'>): Promise<void> {
    const { state, workers, desired, awaited, knowledge, node } = this.#loops
    const before = state.outage
    state.outage = problem
    this.#tell(knowledge.runtimeProblem)
    if (problem === undefined && before !== undefined) {
      void knowledge.learn()
      this.#env.archives.recheck()
    }
    if (problem === undefined && !state.isListed) {
      await node.begin()
      state.isListed = true
      try {
        desired.takeObserved()
        await this.#reconcile()
      } finally {
        awaited.end((uid) => workers.get(uid) !== undefined)
        state.noteReconciled()
      }
      node.jobs.wake('collect-orphans')
    }
    if (before !== problem) {
      this.#wakeAll()
      this.#loops.gate.review()
    }
    if (problem !== undefined && !state.isListed) awaited.tell(problem)
  }

  stage({ worker }: SyncEvent<'stage'>): void {
    const { workers, prober, observer, desired, node } = this.#loops
    const { stage } = worker.state
    // An event may be late: a pod of the same UID may have come in its place.
    if (workers.get(worker.ref.uid) === worker) {
      if (stage === 'stopped' || stage === 'gone') prober.removePod(worker.ref.uid)
      if (stage === 'gone') observer.forgetPod(worker.ref.uid)
    }
    desired.onStage(worker)
    this.#loops.workloads.noteStage(worker)
    // It has ended after the drain was undone, or was ended by one that the host's power cut.
    if (worker.state.record.failed?.until === 'shutdown-ends') node.readmitDrained()
  }

  probe({ uid }: SyncEvent<'probe'>): void {
    const worker = this.#loops.workers.get(uid)
    worker?.notice()
    if (worker !== undefined) this.#loops.gate.notePod(worker.ref)
  }

  pull({ uid }: SyncEvent<'pull'>): void {
    const worker = this.#loops.workers.get(uid)
    worker?.showPull()
    if (worker !== undefined) this.#loops.gate.notePod(worker.ref)
  }

  /** The runtime says of itself that it can't be used, or that it can again. */
  readiness(): void {
    this.#tell(this.#loops.knowledge.runtimeProblem)
    this.#wakeAll()
  }

  features(): void {
    this.#loops.desired.reviewFeatures()
  }

  room(): void {
    this.#loops.desired.reviewAdmission()
  }

  /** The host is going down, or that was called off. */
  shutdown(): void {
    const { node, desired, gate } = this.#loops
    node.readmitDrained()
    desired.reviewAdmission()
    this.#wakeAll()
    gate.review()
  }

  readmit({ now }: SyncEvent<'readmit'>): void {
    this.#loops.desired.readmitEvicted(now)
  }

  orphans(): void {
    if (this.#knowsOrphans) this.#loops.desired.endOrphans()
  }

  /** Until every wanted pod had its turn, a pod without a worker may be one whose record was lost, to be adopted. */
  get #knowsOrphans(): boolean {
    const { state, snapshots } = this.#loops
    return state.isListed && snapshots.areReady && this.#isReconciled
  }

  #wakeAll(): void {
    for (const worker of this.#loops.workers.all()) worker.wake()
  }

  /** A host that was suspended, and what a boot brings: the runtime comes after podd, and podd has no turn for a while. */
  #isOrdinary(problem: string): boolean {
    if (problem === hostStood) return true
    const isBooting = this.#env.clock.uptimeMs() < bootMs
    return isBooting && (!this.#loops.state.isListed || problem === poddStood)
  }

  /**
   * One event for each loss of the runtime, however often its reason changes meanwhile. An ordinary one is told again, as a
   * warning, once its reason isn't ordinary any more or it has lasted too long.
   */
  #tell(problem: string | undefined): void {
    const { events, clock } = this.#env
    const before = this.#toldLoss
    if (problem === undefined) {
      this.#toldLoss = undefined
      before?.patience?.cancel()
      if (before === undefined) return
      return events.recordNode({
        type: 'Normal',
        reason: 'RuntimeAvailable',
        message: 'The container runtime can be used again',
      })
    }
    const isLong = before !== undefined && clock.monotonicMs() - before.sinceMs >= ordinaryLossMs
    const type = this.#isOrdinary(problem) && !isLong ? 'Normal' : 'Warning'
    if (before !== undefined && (before.type === 'Warning' || type === 'Normal')) return
    before?.patience?.cancel()
    const again = (): void => this.#tell(this.#loops.knowledge.runtimeProblem)
    this.#toldLoss = {
      type,
      sinceMs: clock.monotonicMs(),
      patience: type === 'Normal' ? clock.startTimer(ordinaryLossMs, again) : undefined,
    }
    events.recordNode({
      type,
      reason: 'RuntimeUnavailable',
      message: `The container runtime cannot be used, running containers run on: ${problem}`,
    })
  }

  async #reconcile(): Promise<void> {
    const { snapshots, desired, troubles } = this.#loops
    try {
      await this.#reconcilePods()
    } finally {
      this.#loops.services.review()
      const places = new Set(snapshots.all().map(({ location }) => location))
      troubles.noteProblems([...snapshots.problems(), ...desired.problems()], places)
    }
  }

  /** No pod is started before the runtime was listed: it may hold pods whose records are lost. */
  async #reconcilePods(): Promise<void> {
    const { state, snapshots, desired, awaited, node } = this.#loops
    this.#isReconciled = false
    const { wanted, changed } = snapshots.merge()
    if (changed.size > 0) desired.reviewPullSecrets(changed)
    if (!state.isListed) return awaited.show(wanted)
    if (this.#env.sources.length === 0) return
    await desired.reconcile(wanted, (record, key) => snapshots.mayRemove(record, key))
    desired.confirmAdopted((source) => snapshots.isSilent(source))
    node.readmitDrained()
    if (snapshots.areReady) desired.endOrphans()
    desired.reviewEndedByDown((source) => snapshots.isSilent(source))
    this.#isReconciled = true
    // What waits for objects knows now that no more will come.
    if (!state.objectsKnown && snapshots.areReady) this.#wakeAll()
    state.objectsKnown = snapshots.areReady
    if (!this.#hasCollected && snapshots.areReady) {
      this.#hasCollected = true
      node.jobs.wake('collect-images')
    }
  }
}
