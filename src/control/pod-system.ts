import type { PodObject } from '../api/resource.ts'
import type { AppliedObjectEntry, AppliedPodEntry, AppliedReply } from '../api/sources.ts'
import { SharedTurns, sleepUnlessAborted } from '../base/clock.ts'
import { PoddError } from '../base/errors.ts'
import { canonicalJson } from '../base/json.ts'
import { newUuid } from '../base/random.ts'
import type { RandomSource } from '../base/random.ts'
import { Changes } from '../base/waits.ts'
import type { PoddConfig } from '../config/options.ts'
import type { HealthFacts } from '../decide/node/judge-health.ts'
import { defaultContainerPolicy } from '../decide/node/plan-container-garbage.ts'
import { backoffLimits } from '../decide/plan/backoff.ts'
import { newPodRecord } from '../decide/sources/new-pod-record.ts'
import type { PodDocument, Problem, SourceSnapshot } from '../pod/objects/document.ts'
import { keyOfObject } from '../pod/objects/local-object.ts'
import { podFromManifest } from '../pod/schema/default-pod.ts'
import { computeQosClass } from '../pod/schema/pod-resources.ts'
import type { Pod } from '../pod/schema/pod-schema.ts'
import type { PodStatus } from '../pod/state/status.ts'
import { digestText } from '../pod/values/hash.ts'
import { podKey } from '../pod/values/ids.ts'
import type { PodKey, PodUid, SourceName } from '../pod/values/ids.ts'
import type { RunProbe } from '../probes/run-probe.ts'
import { isCriError } from '../runtime/cri-runtime.ts'
import type { ImageService } from '../runtime/cri-runtime.ts'
import type { EndedByDown, PodRecordStore } from '../store/pod-records.ts'
import { findMissingReference } from '../translate/config-hash.ts'
import { AwaitedPods } from './desired/awaited-pods.ts'
import { DesiredPods } from './desired/desired-pods.ts'
import { endPods } from './desired/end-pods.ts'
import { openRules, PodAdmission } from './desired/pod-admission.ts'
import type { AdmissionRules } from './desired/pod-admission.ts'
import { PodWorkers } from './desired/pod-workers.ts'
import { checkStart } from './desired/replacements.ts'
import { SourceSnapshots } from './desired/source-snapshots.ts'
import type { ImageArchives } from './images/archives.ts'
import type { ImageCredentials } from './images/image-access.ts'
import { createImagePuller } from './images/image-puller.ts'
import type { ImagePuller } from './images/image-puller.ts'
import type { PresentImage, PullRequest } from './images/image-request.ts'
import { listNamedImages } from './images/image-uses.ts'
import type { PullContent } from './images/pull-watch.ts'
import { NodeWork } from './node/node-work.ts'
import type { NodeWorkOptions } from './node/node-work.ts'
import { toPodObject } from './pod/display.ts'
import type { PodEnv } from './pod/env.ts'
import type { ProbeReport } from './pod/prober-worker.ts'
import { Prober } from './pod/prober.ts'
import { PodWorker } from './pod/worker.ts'
import type { Eviction } from './pod/worker.ts'
import { RuntimeObserver } from './runtime/runtime-observer.ts'
import type { RuntimeEventSource } from './runtime/runtime-observer.ts'
import { RuntimeKnowledge, RuntimeWatch, SystemState } from './runtime/runtime-watch.ts'
import type { RuntimePulse } from './runtime/runtime-watch.ts'
import type { ObjectStore } from './serving/object-store.ts'
import { ShownResources } from './serving/resource-store.ts'
import { StatusStore } from './serving/status-store.ts'
import { Reconciler, SyncLoop } from './sync-loop.ts'
import type { SyncHandlers } from './sync-loop.ts'

/** How long the runtime may take to answer the first question: as long as a call may take. */
const firstListMs = 120_000
/** After how long the pods of an earlier podd are shown although the runtime was not listed yet. */
const slowListMs = 5000
/** How long the pods' workers may take to stop when podd stops. */
const stopMs = 3000

/** The control loops, as the rest of podd uses them: started, asked and stopped. Knows no sockets, no watched files and no flags. */
export class PodSystem {
  readonly statuses: StatusStore
  readonly objects: ObjectStore
  readonly #options: PodSystemOptions
  readonly #loops: Loops
  /** The work about the host as a whole. */
  readonly node: NodeWork

  constructor(options: PodSystemOptions) {
    this.#options = options
    this.objects = options.objects
    this.#loops = createLoops(options)
    this.statuses = this.#loops.statuses
    this.node = this.#loops.node
  }

  /** Whether there is a record of the pod, readable or not, or the runtime has something of it; true while that is unknown. */
  knowsPod(uid: PodUid): boolean {
    const { state, workers, observer } = this.#loops
    return !state.isListed || workers.isRecorded(uid) || observer.pods().has(uid)
  }

  /**
   * Terminates a pod for the sake of the node: it fails with this reason and message, and its status stays. False where
   * there is no such pod, or it has ended or is ending already.
   */
  evict(uid: PodUid, eviction: Eviction): boolean {
    return this.findPod(uid)?.evict(eviction) ?? false
  }

  /** Documents that are not followed, and why; warnings too. */
  problems(): readonly Problem[] {
    const archives = this.#options.archives?.problems() ?? []
    return [
      ...this.#loops.snapshots.problems(),
      ...this.objects.problems(),
      ...this.#loops.desired.problems(),
      ...archives,
    ]
  }

  /** Why the runtime can't be used for now. */
  get runtimeProblem(): string | undefined {
    return this.#loops.knowledge.runtimeProblem
  }

  /** Why the runtime can't make pods with a network of their own, and what to do; undefined where it can. */
  get networkProblem(): string | undefined {
    return this.#loops.knowledge.networkProblem
  }

  /** What podd knows of its own work. */
  get healthFacts(): HealthFacts {
    const { clock, settings } = this.#options
    return {
      nowMs: clock.monotonicMs(),
      eventWaitsSinceMs: this.#loops.loop.waitsSinceMs,
      relistPeriodMs: settings.syncFrequencyMs,
      listedAtMs: this.#loops.observer.listedAtMs,
      blocked: this.node.jobs.blocked,
      isRuntimeDown: this.#loops.knowledge.runtimeProblem !== undefined,
      isNetworkDown: this.#loops.knowledge.networkProblem !== undefined,
    }
  }

  /** What the sources gave last. */
  snapshots(): readonly SourceSnapshot[] {
    return this.#loops.snapshots.all()
  }

  /** The pod's worker; also undefined while it is not known what runs of the pod. */
  findPod(uid: PodUid): PodWorker | undefined {
    return this.#loops.state.isListed ? this.#loops.workers.get(uid) : undefined
  }

  /** The results of a pod's probes. */
  probes(uid: PodUid): readonly ProbeReport[] {
    return this.#loops.prober.reports(uid)
  }

  /** What pods run by, and the objects that they refer to. */
  applied(): Pick<AppliedReply, 'pods' | 'objects'> {
    return {
      pods: listAppliedPods(this.#loops.workers.all()),
      objects: listAppliedObjects(this.objects),
    }
  }

  /** The pods that are not removed yet, with their manifests. */
  allPods(): readonly Pod[] {
    return [...this.#loops.awaited.pods(), ...[...this.#loops.workers.all()].map(({ state }) => state.pod)]
  }

  /** The pods that hold resources, as they were admitted. */
  *livePods(): Generator<readonly [PodUid, Pod], void> {
    for (const { ref, state } of this.#loops.workers.all())
      if (state.holdsResources) yield [ref.uid, state.allocatedPod]
  }

  /** Resolves when the pods of an earlier podd are among the statuses, after some seconds at the latest. */
  get whenShown(): Promise<void> {
    return this.#loops.awaited.allShown
  }

  /** Resolves when the runtime was listed for the first time; never where it isn't. */
  get whenListed(): Promise<void> {
    return this.#loops.state.whenListed
  }

  offerSnapshot(snapshot: SourceSnapshot): void {
    this.#loops.loop.post({ kind: 'snapshot', snapshot })
  }

  /** Resolves when the loop has taken the snapshot, or has ended. */
  takeSnapshot(snapshot: SourceSnapshot): Promise<void> {
    return new Promise((resolve) => this.#loops.loop.post({ kind: 'snapshot', snapshot, onTaken: resolve }))
  }

  /**
   * Shows a pod that a source is about to give, until its worker says how it is.
   * @param last how it was when it ended, of one that no source gives any more
   */
  showNew(document: PodDocument, source: SourceName, last?: PodStatus): void {
    const { clock, host } = this.#options
    const uid = document.kept?.uid ?? newUuid()
    const nowMs = document.kept?.createdAtMs ?? clock.wallMs()
    const record = newPodRecord({ uid, document, source, nowMs, createdAtMs: undefined })
    const qosClass = computeQosClass(document.pod.spec)
    const status = last ?? ({ phase: 'Pending', conditions: [], qosClass } as const)
    const object = toPodObject(document.pod, record, { status, nodeName: host.hostName })
    this.statuses.publishProvisional(uid, object)
  }

  /** Ends a pod for good; its source gives it no more. */
  endPod(uid: PodUid, graceSeconds: number): void {
    const worker = this.#loops.workers.get(uid)
    if (worker === undefined) this.statuses.removeProvisional(uid)
    else
      worker.end({
        cause: 'removed',
        reason: 'Killing',
        message: 'The pod was deleted over the API',
        graceSeconds,
      })
  }

  /** Pulls an image for no pod, with the node's credentials. Throws the runtime's error, or the signal's reason. */
  pullImage(request: PullRequest): Promise<PresentImage> {
    return this.#loops.images.pull(request)
  }

  /** These images (complete names) are there now: pods that lacked one of them try again at once. */
  reviewImages(names: readonly string[]): void {
    const present = new Set(names)
    for (const worker of this.#loops.workers.all()) worker.reviewImages(present)
  }

  /** The runtime became unavailable or available, as another part found; undefined: check. */
  reportRuntime(problem: string | undefined): void {
    if (problem === undefined) this.#loops.observer.requestRelist()
    else this.#loops.observer.reportGone(problem)
  }

  /**
   * Runs until the signal is aborted, then stops the loops; the pods keep running.
   * @param opened resolves when it makes sense to ask the runtime; pods are shown before
   */
  async run(signal: AbortSignal, opened: Promise<unknown> = Promise.resolve()): Promise<void> {
    const { host, clock } = this.#options
    const { records, unreadable } = await this.#options.records.load()
    this.#loops.desired.noteEndedByDown(await this.#options.records.loadEndedByDown())
    await this.#loops.snapshots.loadClaimOwners()
    await this.#loops.desired.adopt(records, unreadable)
    const following = host.followResolver(() => this.node.followHost(), signal)
    this.#loops.awaited.begin()
    const late = clock.startTimer(slowListMs, () =>
      this.#loops.awaited.hurry(
        this.#loops.state.isListed ? undefined : this.#loops.knowledge.runtimeProblem,
      ),
    )
    const observing = opened.then(() =>
      signal.aborted
        ? undefined
        : Promise.all([this.#loops.observer.run(signal), this.#loops.watch.run(signal)]),
    )
    const importing = this.#options.archives?.run(signal)
    await Promise.all([
      following,
      importing,
      this.node.jobs.run(signal),
      this.#loops.loop.run(this.#loops.handlers, signal),
      observing,
    ])
    late.cancel()
    await this.#saveEndedByDown()
    this.#loops.prober.stop()
    this.#loops.knowledge.stop()
    const stopped = this.#loops.desired.stop()
    const done = new AbortController()
    await Promise.race([stopped, sleepUnlessAborted(clock, stopMs, done.signal)])
    done.abort()
  }

  /** The list is for the next start: those that have started since are in their records. */
  async #saveEndedByDown(): Promise<void> {
    const { desired, reconciler, snapshots } = this.#loops
    if (!reconciler.knowsAllPods) return
    const left = desired.reviewEndedByDown((source) => snapshots.isSilent(source))
    await this.#writeEndedByDown(left)
  }

  /** Their records go with them: the next podd takes from this who ran. */
  async #noteRunning(): Promise<void> {
    const earlier = await this.#options.records.loadEndedByDown()
    const running = [...this.#loops.workers.all()].flatMap(({ state: { record, hasEnded } }) => {
      const { startedAtMs, ending, failed, namespace, name, source, path, manifest } = record
      const ran = failed === undefined ? !hasEnded : failed.until === 'shutdown-ends'
      const isListed = ran && startedAtMs !== undefined && ending === undefined
      return isListed ? [{ namespace, name, source, path, manifest }] : []
    })
    const keys = new Set(running.map((pod) => podKey(pod)))
    await this.#writeEndedByDown([...running, ...earlier.filter((pod) => !keys.has(podKey(pod)))])
  }

  async #writeEndedByDown(pods: readonly EndedByDown[]): Promise<void> {
    try {
      await this.#options.records.saveEndedByDown(pods)
    } catch (error) {
      this.#options.logger.warn({ err: error }, 'cannot record which pods ran')
    }
  }

  /**
   * Terminates every pod; resolves when all are removed. For `podd down`: `run` continues meanwhile.
   * @param options.removesEnded whether pods of the API that have ended for good are removed too
   */
  async endAll(options: {
    readonly graceSeconds: number | undefined
    readonly removesEnded?: boolean
    readonly signal: AbortSignal
  }): Promise<{ readonly ended: number; readonly stuck: readonly PodKey[] }> {
    const { clock } = this.#options
    const { changes, knowledge, state } = this.#loops
    const isListed = await changes.until(() => state.isListed, clock, firstListMs, options.signal)
    if (!isListed)
      throw new PoddError(
        'RUNTIME_UNAVAILABLE',
        knowledge.runtimeProblem ?? 'cannot list the containers of the runtime',
      )
    this.#loops.workers.endUnrecorded()
    await this.#noteRunning()
    const { graceSeconds, removesEnded = false, signal } = options
    return endPods([...this.#loops.workers.all()], {
      graceSeconds,
      removesEnded,
      changes,
      clock,
      runtimeProblem: () => knowledge.runtimeProblem,
      signal,
    })
  }
}

/** The control loops, each with what it needs of the others. None runs yet. */
interface Loops {
  readonly changes: Changes
  readonly statuses: StatusStore
  readonly state: SystemState
  readonly loop: SyncLoop
  readonly handlers: SyncHandlers
  readonly observer: RuntimeObserver
  readonly watch: RuntimeWatch
  readonly prober: Prober
  readonly knowledge: RuntimeKnowledge
  readonly images: ImagePuller
  readonly workers: PodWorkers
  readonly snapshots: SourceSnapshots
  readonly awaited: AwaitedPods
  readonly desired: DesiredPods
  /** The work about the host as a whole. */
  readonly node: NodeWork
  readonly reconciler: Reconciler
}

/**
 * Constructs the loops in the order in which they need each other. Whoever has to tell something to what comes later posts an
 * event; five functions alone read or call what is made after them.
 */
function createLoops(options: PodSystemOptions): Loops {
  const { clock, random, logger, events, host, settings, objects } = options
  const changes = new Changes()
  const statuses = new StatusStore(
    (options.shown ?? new ShownResources(clock.wallMs())).pods,
    options.presentPod,
  )
  const state = new SystemState()
  const loop = new SyncLoop(clock, logger, changes)
  const observer = new RuntimeObserver({
    calls: options.runtime,
    events: options.runtimeEvents,
    clock,
    random,
    logger,
    instance: host.instance,
    relistMs: settings.syncFrequencyMs,
    hasOomKills: (uid, containerId) => host.cgroups.hasOomKills(uid, containerId),
    onChange: (uid) => loop.post({ kind: 'runtime', uid }),
    onHealth: (health) => loop.post({ kind: 'health', health }),
    isNotFound: (error) => isCriError(error, 'RUNTIME_NOT_FOUND'),
    isTimeout: (error) => isCriError(error, 'RUNTIME_TIMEOUT'),
  })
  const prober = new Prober({
    clock,
    random,
    runProbe: options.runProbe,
    events,
    onResult: ({ uid }) => loop.post({ kind: 'probe', uid }),
  })
  const knowledge = new RuntimeKnowledge({
    runtime: options.runtime,
    state,
    clock,
    logger,
    onLearnt: () => loop.post({ kind: 'features' }),
    onReadiness: () => loop.post({ kind: 'readiness' }),
  })
  const watch = new RuntimeWatch({
    clock,
    pulse: options.pulse,
    // The first report of the loss has the better reason.
    onGap: (message) => observer.reportGone(knowledge.runtimeProblem ?? message),
    onFrozen: options.onRuntimeFrozen,
  })
  const images = createImagePuller(options, {
    makeRoom: async (signal) => node.imageGarbage?.collect({ kind: 'thresholds' }, signal),
    onPulling: (uid) => loop.post({ kind: 'pull', uid }),
  })
  const env: PodEnv = {
    ...host,
    clock,
    random,
    logger,
    events,
    records: options.records,
    images,
    observer,
    knowledge,
    prober,
    statuses,
    changes,
    turns: new SharedTurns(clock),
    limits: backoffLimits(settings.maxContainerRestartPeriodMs),
    containerPolicy: options.containerPolicy ?? defaultContainerPolicy,
    runtimeName: options.runtimeName,
    runtimeLosses: () => {
      watch.look()
      return observer.losses
    },
    system: state,
    reviewAdmission: () => desired.reviewAdmission(),
  }
  const workers = new PodWorkers({
    makeWorker: (input) => new PodWorker(env, input, (worker) => loop.post({ kind: 'stage', worker })),
    podFromManifest,
    clock,
    logger,
    observedPods: () => observer.pods(),
    observedNamed: (key) => observer.podsNamed(key),
  })
  const snapshots = new SourceSnapshots({
    sources: options.sources,
    podNameSuffix: settings.podNameSuffix === 'node' ? `-${host.hostName}` : '',
    objects,
    listClaimOwners: () => host.volumes.listClaimOwners(),
    maxPods: settings.maxPods,
    workers,
    endedByDown: (key) => desired.endedByDown(key),
    logger,
  })
  const awaited = new AwaitedPods({
    statuses,
    adopted: workers,
    host,
    clock,
    logger,
    runtimeName: options.runtimeName,
  })
  const desired: DesiredPods = new DesiredPods({
    workers,
    images,
    takeShown: (key) => awaited.take(key),
    missingReference: (sourced) => findMissingReference(host, sourced),
    checkStart: (pod, before) => checkStart(options, pod, before),
    clock,
    logger,
    admission: new PodAdmission(options.admission ?? openRules({ maxPods: settings.maxPods }), {
      objects,
      features: () => knowledge.features,
      nodeRefusal: (pod) => node.refusal(pod),
    }),
  })
  const node: NodeWork = new NodeWork(options, {
    workers: () => workers.all(),
    changes,
    observer,
    state,
    knowledge,
    knowsAllPods: () => reconciler.knowsAllPods,
    namedImages: () => listNamedImages(workers.all(), snapshots.all()),
    isRemoved: (pod) => workers.fateOf(pod, false) === 'end',
    endOrphans: () => {
      if (reconciler.knowsOrphans) workers.endOrphans()
    },
    readmit: (now) => desired.readmitEvicted(now),
    reviewAdmission: () => desired.reviewAdmission(),
    reviewSources: () => {
      for (const snapshot of snapshots.withRoom()) loop.post({ kind: 'snapshot', snapshot })
    },
  })
  const reconciler: Reconciler = new Reconciler({
    state,
    snapshots,
    desired,
    awaited,
    knowledge,
    archives: options.archives,
    node,
    hasSources: options.sources.length > 0,
    events,
  })
  const handlers: SyncHandlers = {
    snapshot: ({ snapshot }) => reconciler.takeSnapshot(snapshot),
    runtime: ({ uid }) => {
      const worker = workers.get(uid)
      if (worker === undefined) reconciler.takeUnrecorded(uid)
      else worker.notice()
    },
    health: ({ health }) => reconciler.takeHealth(health.healthy ? undefined : health.message),
    stage: ({ worker }) => {
      const { stage } = worker.state
      // An event may be late: a pod of the same UID may have come in its place.
      if (workers.get(worker.ref.uid) === worker) {
        if (stage === 'stopped' || stage === 'gone') prober.removePod(worker.ref.uid)
        if (stage === 'gone') observer.forgetPod(worker.ref.uid)
      }
      desired.onStage(worker)
      // It has ended after the drain was undone, or was ended by one that the host's power cut.
      if (worker.state.record.failed?.until === 'shutdown-ends') node.readmitDrained()
    },
    probe: ({ uid }) => workers.get(uid)?.notice(),
    pull: ({ uid }) => workers.get(uid)?.showPull(),
    readiness: () => reconciler.takeReadiness(),
    features: () => desired.reviewFeatures(),
  }
  return {
    changes,
    statuses,
    state,
    loop,
    handlers,
    observer,
    watch,
    prober,
    knowledge,
    images,
    workers,
    snapshots,
    awaited,
    desired,
    node,
    reconciler,
  }
}

/** The settings that the loops go by. */
export type PodSettings = Pick<
  PoddConfig,
  | 'maxPods'
  | 'syncFrequencyMs'
  | 'podNameSuffix'
  | 'maxContainerRestartPeriodMs'
  | 'serializeImagePulls'
  | 'maxParallelImagePulls'
  | 'registryPullQps'
  | 'registryBurst'
  | 'imagePullProgressTimeoutMs'
> &
  NodeWorkOptions['settings']

export interface PodSystemOptions extends NodeWorkOptions {
  /** Empty; the sources fill it. */
  readonly objects: ObjectStore
  readonly pulse: RuntimePulse
  /** The runtime has been silent for so long that it isn't waited for any more; undefined where it is somebody else's. */
  readonly onRuntimeFrozen: (() => void) | undefined
  readonly images: ImageService
  /** Left out, images are pulled without credentials, and every pod may use every image. */
  readonly credentials?: ImageCredentials
  /** Undefined where the runtime serves no events. */
  readonly runtimeEvents: RuntimeEventSource | undefined
  readonly records: Pick<
    PodRecordStore,
    'load' | 'save' | 'isThere' | 'remove' | 'checkRoom' | 'loadEndedByDown' | 'saveEndedByDown'
  >
  /** Where the pods are shown; left out, in a store of their own. */
  readonly shown?: ShownResources
  /** What is shown of a pod, where that is more than its manifest and its status say. */
  readonly presentPod?: (object: PodObject) => PodObject
  readonly runProbe: RunProbe
  readonly random: RandomSource
  /** The sources that are configured: none of their pods goes before all have spoken. */
  readonly sources: readonly SourceName[]
  /** `containerd`; asked when a status is made. */
  readonly runtimeName: () => string
  readonly settings: PodSettings
  /** Beside `maxPods`; left out, whatever fits is admitted. */
  readonly admission?: AdmissionRules
  /** Left out, no archives of images are followed. */
  readonly archives?: ImageArchives
  /** Left out, the runtime alone gives up pulls that hang. */
  readonly pullContent?: PullContent | undefined
}

/** The manifests that the pods currently run by; of a pod that is being replaced, the old one until it is gone. */
function listAppliedPods(workers: Iterable<PodWorker>): readonly AppliedPodEntry[] {
  return [...workers]
    .filter(({ state }) => state.stage !== 'stopped' && state.stage !== 'gone')
    .map(({ ref, state }) => ({
      key: podKey(ref),
      path: state.record.path,
      source: state.record.source,
      manifest: state.record.manifest,
      isPastChange: state.isPastChange,
      isUpToDate: state.pod.spec.containers.every(({ name, image }) => {
        const newest = state.observed.containers.find((container) => container.name === name)
        return newest === undefined || newest.image === image
      }),
    }))
}

/** The objects that pods refer to, by a hash of their manifests: they may be secret. */
function listAppliedObjects(objects: Pick<ObjectStore, 'documents'>): readonly AppliedObjectEntry[] {
  return objects.documents().map(({ document: { object, manifest, place }, source }) => ({
    key: keyOfObject(object),
    path: place.path,
    source,
    hash: digestText(canonicalJson(manifest)),
  }))
}
