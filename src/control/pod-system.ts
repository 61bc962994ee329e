import type { AppliedReply } from '../api/applied.ts'
import { PoddError } from '../base/errors.ts'
import { newUuid } from '../base/random.ts'
import { isCriError } from '../cri/cri-error.ts'
import type { HealthFacts } from '../decide/node/judge-health.ts'
import { newPodRecord } from '../decide/sources/new-pod-record.ts'
import type { PodDocument, Problem, SourceName, SourceSnapshot } from '../pod/objects/document.ts'
import type { PodKey, PodUid } from '../pod/values/ids.ts'
import type { Pod } from '../pod/schema/pod-schema.ts'
import { computeQosClass } from '../pod/spec/qos.ts'
import { podFromManifest } from '../pod/decode/pod-from-manifest.ts'
import { AwaitedPods } from './desired/awaited-pods.ts'
import { DesiredPods } from './desired/desired-pods.ts'
import { endPods } from './desired/end-pods.ts'
import { foreseeStart } from './desired/foresee-start.ts'
import { createImagePuller } from './images/create-image-puller.ts'
import type { ImagePuller } from './images/image-puller.ts'
import type { PresentImage, PullRequest } from './images/image-request.ts'
import { makePodWorker } from './desired/make-pod-worker.ts'
import { noteSandboxes } from './desired/make-pod-worker.ts'
import type { WorkerSurroundings } from './desired/make-pod-worker.ts'
import type { ObjectStore } from './objects/object-store.ts'
import { openRules, PodAdmission } from './desired/pod-admission.ts'
import type { Eviction, PodWorker } from './worker/pod-worker.ts'
import { Prober } from './probing/prober.ts'
import type { ProbeReport } from './probing/prober-worker.ts'
import { RuntimeKnowledge } from './runtime/runtime-knowledge.ts'
import { RuntimeObserver } from './runtime/runtime-observer.ts'
import { RuntimeWatch } from './runtime/runtime-watch.ts'
import { findMissingReference } from '../translate/find-missing-reference.ts'
import { SourceSnapshots } from './desired/source-snapshots.ts'
import { toPodObject } from './worker/pod-display.ts'
import { ShownResources } from './status/shown-resources.ts'
import { StatusStore } from './status/status-store.ts'
import { listAppliedObjects, listAppliedPods } from './serving/list-applied.ts'
import { Reconciler } from './reconciler.ts'
import { SyncLoop } from './sync-loop.ts'
import { listNamedImages } from './images/named-images.ts'
import { NodeWork } from './node/node-work.ts'
import type { PodSystemOptions } from './pod-system-options.ts'

/** How long the runtime may take to answer the first question: as long as a call may take. */
const firstListMs = 120_000
/** After how long the pods of an earlier podd are shown although the runtime was not listed yet. */
const slowListMs = 5000
/** How long the pods' workers may take to stop when podd stops. */
const letGoMs = 3000

/** The loops and what they share, wired together. Knows nothing of sockets, files watched or flags. */
export class PodSystem {
  readonly statuses: StatusStore
  readonly objects: ObjectStore
  readonly #options: PodSystemOptions
  readonly #loop: SyncLoop
  readonly #observer: RuntimeObserver
  readonly #watch: RuntimeWatch
  readonly #desired: DesiredPods
  readonly #prober: Prober
  readonly #knowledge: RuntimeKnowledge
  readonly #snapshots: SourceSnapshots
  readonly #awaited: AwaitedPods
  readonly #images: ImagePuller
  /** The work about the host as a whole. */
  readonly node: NodeWork
  readonly #reconciler: Reconciler

  constructor(options: PodSystemOptions) {
    const { clock, random, logger, events, host, settings } = options
    this.#options = options
    this.objects = options.objects
    this.statuses = new StatusStore(
      (options.shown ?? new ShownResources(clock.wallMs())).pods,
      options.presentPod,
    )
    this.#snapshots = new SourceSnapshots({
      sources: options.sources,
      podNameSuffix: settings.podNameSuffix === 'node' ? `-${host.hostName}` : '',
      objects: this.objects,
      listClaimOwners: () => host.volumes.listClaimOwners(),
      workers: () => this.#desired.workers.all(),
      logger,
    })
    this.#loop = new SyncLoop(
      {
        snapshot: ({ snapshot }) => this.#reconciler.takeSnapshot(snapshot),
        runtime: ({ uid }) => {
          const worker = this.#desired.workers.get(uid)
          if (worker === undefined) this.#reconciler.takeUnrecorded()
          else worker.notice()
        },
        health: ({ health }) => this.#reconciler.takeHealth(health.healthy ? undefined : health.message),
        stage: ({ worker }) => {
          if (worker.state.stage === 'stopped') this.#prober.removePod(worker.ref.uid)
          if (worker.state.stage === 'gone') {
            this.#prober.removePod(worker.ref.uid)
            this.#observer.forgetPod(worker.ref.uid)
          }
          this.#desired.onStage(worker)
          // It has ended after the drain was undone, or was ended by one that the host's power cut.
          if (worker.state.record.failed?.until === 'shutdown-ends') this.node.readmitDrained()
        },
        probe: ({ uid }) => this.#desired.workers.get(uid)?.notice(),
      },
      { clock, logger },
    )
    this.#observer = new RuntimeObserver({
      calls: options.runtime,
      events: options.runtimeEvents,
      clock,
      random,
      logger,
      instance: host.instance,
      relistMs: settings.syncFrequencyMs,
      onChange: (uid) => this.#loop.post({ kind: 'runtime', uid }),
      onHealth: (health) => this.#loop.post({ kind: 'health', health }),
      isNotFound: (error) => isCriError(error, 'RUNTIME_NOT_FOUND'),
      isTimeout: (error) => isCriError(error, 'RUNTIME_TIMEOUT'),
    })
    this.#watch = new RuntimeWatch({
      clock,
      pulse: options.pulse,
      // Who found it gone before knows better why.
      onGap: (message) => this.#observer.reportGone(this.#reconciler.runtimeProblem ?? message),
      onFrozen: options.onRuntimeFrozen,
    })
    this.#prober = new Prober({
      clock,
      random,
      runProbe: options.runProbe,
      events,
      onResult: ({ uid }) => this.#loop.post({ kind: 'probe', uid }),
    })
    this.#knowledge = new RuntimeKnowledge({
      runtime: options.runtime,
      clock,
      logger,
      isUp: () => this.#reconciler.runtimeProblem === undefined,
      onLearnt: () => this.#desired.reviewAdmission(),
    })
    this.#images = createImagePuller(options, {
      makeRoom: async (signal) => this.node.imageGarbage?.collect({ kind: 'thresholds' }, signal),
      onPulling: (uid) => this.#desired.workers.get(uid)?.showPull(),
    })
    this.#awaited = new AwaitedPods({
      statuses: this.statuses,
      adopted: () => this.#desired.workers.all(),
      host,
      clock,
      logger,
      runtimeName: options.runtimeName,
    })
    const surroundings: WorkerSurroundings = {
      options: { ...options, host: noteSandboxes(host, this.#observer) },
      images: this.#images,
      observer: this.#observer,
      prober: this.#prober,
      statuses: this.statuses,
      knowledge: this.#knowledge,
      onStage: (worker) => this.#loop.post({ kind: 'stage', worker }),
      runtimeProblem: () => this.#reconciler.runtimeProblem,
      runtimeLosses: () => {
        this.#watch.look()
        return this.#observer.losses
      },
      objectsKnown: () => this.#reconciler.objectsKnown,
    }
    this.#desired = new DesiredPods({
      images: this.#images,
      takeShown: (key) => this.#awaited.take(key),
      podFromManifest,
      missingReference: (sourced) => findMissingReference(host, sourced),
      foreseeStart: (pod) => foreseeStart(options, pod),
      clock,
      logger,
      admission: new PodAdmission(options.admission ?? openRules({ maxPods: settings.maxPods }), {
        objects: this.objects,
        features: () => this.#knowledge.features,
        nodeRefusal: (pod) => this.node.refusal(pod),
      }),
      observedPods: () => this.#observer.pods(),
      makeWorker: (input) => makePodWorker(surroundings, input),
    })
    this.node = new NodeWork(options, {
      workers: () => this.#desired.workers.all(),
      observed: () => this.#observer.pods(),
      isListed: () => this.#reconciler.listed,
      isRuntimeUp: () => this.#reconciler.runtimeProblem === undefined,
      knowsAllPods: () => this.#reconciler.knowsAllPods,
      namedImages: () => listNamedImages(this.#desired.workers.all(), this.#snapshots.all()),
      isRemoved: (pod) => this.#desired.workers.fateOf(pod, false) === 'end',
      endOrphans: () => this.#reconciler.endOrphans(),
      readmit: (now) => this.#desired.readmitEvicted(now),
      reviewAdmission: () => this.#desired.reviewAdmission(),
    })
    this.#reconciler = new Reconciler({
      snapshots: this.#snapshots,
      desired: this.#desired,
      awaited: this.#awaited,
      knowledge: this.#knowledge,
      archives: options.archives,
      node: this.node,
      hasSources: options.sources.length > 0,
      events,
    })
  }

  /** Whether there is a record of the pod, readable or not, or the runtime has something of it; true while that is unknown. */
  knowsPod(uid: PodUid): boolean {
    return !this.#reconciler.listed || this.#desired.workers.isRecorded(uid) || this.#observer.pods().has(uid)
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
      ...this.#snapshots.problems(),
      ...this.objects.problems(),
      ...this.#desired.problems(),
      ...archives,
    ]
  }

  /** Why the runtime can't be used for now. */
  get runtimeProblem(): string | undefined {
    return this.#reconciler.runtimeProblem
  }

  /** What podd knows of its own work. */
  get healthFacts(): HealthFacts {
    const { clock, settings } = this.#options
    return {
      nowMs: clock.monotonicMs(),
      eventWaitsSinceMs: this.#loop.waitsSinceMs,
      relistPeriodMs: settings.syncFrequencyMs,
      listedAtMs: this.#observer.listedAtMs,
      blocked: this.node.jobs.blocked,
      isRuntimeDown: this.#reconciler.runtimeProblem !== undefined,
    }
  }

  /** What the sources gave last. */
  snapshots(): readonly SourceSnapshot[] {
    return this.#snapshots.all()
  }

  /** The pod's worker; also undefined while it is not known what runs of the pod. */
  findPod(uid: PodUid): PodWorker | undefined {
    return this.#reconciler.listed ? this.#desired.workers.get(uid) : undefined
  }

  /** What came of a pod's probes. */
  probes(uid: PodUid): readonly ProbeReport[] {
    return this.#prober.reports(uid)
  }

  /** What pods run by, and the objects that they refer to. */
  applied(): Pick<AppliedReply, 'pods' | 'objects'> {
    return {
      pods: listAppliedPods(this.#desired.workers.all()),
      objects: listAppliedObjects(this.objects),
    }
  }

  /** The pods that are not removed yet, with their manifests. */
  allPods(): readonly Pod[] {
    return [...this.#awaited.pods(), ...[...this.#desired.workers.all()].map(({ state }) => state.pod)]
  }

  /** The pods that hold resources, as they were admitted. */
  livePods(): readonly Pod[] {
    return [...this.#desired.workers.all()].flatMap(({ state }) =>
      state.holdsResources ? [state.allocatedPod] : [],
    )
  }

  /** Resolves when the pods of an earlier podd are among the statuses, after some seconds at the latest. */
  get whenShown(): Promise<void> {
    return this.#awaited.allShown
  }

  /** Resolves when the runtime was listed for the first time; never where it isn't. */
  get whenListed(): Promise<void> {
    return this.#reconciler.whenListed
  }

  offerSnapshot(snapshot: SourceSnapshot): void {
    this.#loop.post({ kind: 'snapshot', snapshot })
  }

  /** Resolves when the loop has taken the snapshot, or has ended. */
  takeSnapshot(snapshot: SourceSnapshot): Promise<void> {
    return new Promise((resolve) => this.#loop.post({ kind: 'snapshot', snapshot, onTaken: resolve }))
  }

  /** Shows a pod that a source is about to give, until its worker says how it is. */
  showNew(document: PodDocument, source: SourceName): void {
    const { clock, host } = this.#options
    const uid = document.kept?.uid ?? newUuid()
    const nowMs = document.kept?.createdAtMs ?? clock.wallMs()
    const record = newPodRecord({ uid, document, source, nowMs, createdAtMs: undefined })
    const status = { phase: 'Pending', conditions: [], qosClass: computeQosClass(document.pod.spec) } as const
    const object = toPodObject(document.pod, record, { status, nodeName: host.hostName })
    this.statuses.publishProvisional(uid, object)
  }

  /** Ends a pod for good; its source gives it no more. */
  endPod(uid: PodUid, graceSeconds: number): void {
    const worker = this.#desired.workers.get(uid)
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
    return this.#images.pull(request)
  }

  /** These images (complete names) are there now: pods that lacked one of them try again at once. */
  reviewImages(names: readonly string[]): void {
    const present = new Set(names)
    for (const worker of this.#desired.workers.all()) worker.reviewImages(present)
  }

  /** The runtime became unavailable or available, as another part found; undefined: check. */
  reportRuntime(problem: string | undefined): void {
    if (problem === undefined) this.#observer.requestRelist()
    else this.#observer.reportGone(problem)
  }

  /**
   * Runs until the signal is aborted, then lets go of the pods, which run on.
   * @param opened resolves when it makes sense to ask the runtime; pods are shown before
   */
  async run(signal: AbortSignal, opened: Promise<unknown> = Promise.resolve()): Promise<void> {
    const { host, clock } = this.#options
    const { records, unreadable } = await this.#options.records.load()
    await this.#snapshots.loadClaimOwners()
    this.#desired.adopt(records, unreadable)
    const following = host.followResolver?.(() => this.node.followHost(), signal)
    this.#awaited.begin()
    const late = clock.startTimer(slowListMs, () =>
      this.#awaited.hurry(this.#reconciler.listed ? undefined : this.#reconciler.runtimeProblem),
    )
    const observing = opened.then(() =>
      signal.aborted ? undefined : Promise.all([this.#observer.run(signal), this.#watch.run(signal)]),
    )
    const importing = this.#options.archives?.run(signal)
    await Promise.all([following, importing, this.node.jobs.run(signal), this.#loop.run(signal), observing])
    late.cancel()
    this.#prober.stop()
    this.#knowledge.stop()
    const stopped = this.#desired.stop()
    const done = new AbortController()
    await Promise.race([stopped, clock.sleep(letGoMs, done.signal).catch(() => {})])
    done.abort()
  }

  /** Terminates every pod; resolves when all are removed. For `podd down`: `run` continues meanwhile. */
  async endAll(options: {
    readonly graceSeconds: number | undefined
    readonly signal: AbortSignal
  }): Promise<{ readonly ended: number; readonly stuck: readonly PodKey[] }> {
    const { clock } = this.#options
    const listedByMs = clock.monotonicMs() + firstListMs
    while (!this.#reconciler.listed) {
      if (clock.monotonicMs() > listedByMs)
        throw new PoddError(
          'RUNTIME_UNAVAILABLE',
          this.#reconciler.runtimeProblem ?? 'cannot list the containers of the runtime',
        )
      await clock.sleep(20, options.signal)
    }
    this.#desired.workers.endUnrecorded()
    const { graceSeconds, signal } = options
    const runtimeProblem = (): string | undefined => this.#reconciler.runtimeProblem
    return endPods([...this.#desired.workers.all()], { graceSeconds, clock, runtimeProblem, signal })
  }
}
