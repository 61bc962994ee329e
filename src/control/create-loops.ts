import { SharedTurns } from '../base/clock.ts'
import { isCriError } from '../runtime/cri-runtime.ts'
import { podFromManifest } from '../pod/schema/default-pod.ts'
import { AwaitedPods } from './desired/awaited-pods.ts'
import { DesiredPods } from './desired/desired-pods.ts'
import { checkStart } from './desired/replacement.ts'
import { createImagePuller } from './images/create-image-puller.ts'
import type { ImagePuller } from './images/image-puller.ts'
import { makePodWorker } from './desired/make-pod-worker.ts'
import { noteSandboxes } from './desired/make-pod-worker.ts'
import type { WorkerSurroundings } from './desired/make-pod-worker.ts'
import { openRules, PodAdmission } from './desired/pod-admission.ts'
import { Prober } from './probing/prober.ts'
import { RuntimeKnowledge } from './runtime/runtime-knowledge.ts'
import { RuntimeObserver } from './runtime/runtime-observer.ts'
import { RuntimeWatch } from './runtime/runtime-watch.ts'
import { findMissingReference } from '../translate/config-hash.ts'
import { SourceSnapshots } from './desired/source-snapshots.ts'
import { ShownResources } from './status/shown-resources.ts'
import { StatusStore } from './status/status-store.ts'
import { Reconciler } from './reconciler.ts'
import { SyncLoop } from './sync-loop.ts'
import { listNamedImages } from './images/named-images.ts'
import { NodeWork } from './node/node-work.ts'
import type { PodSystemOptions } from './pod-system-options.ts'

/** The control loops, each with what it needs of the others. None runs yet. */
export interface Loops {
  readonly statuses: StatusStore
  readonly snapshots: SourceSnapshots
  readonly loop: SyncLoop
  readonly observer: RuntimeObserver
  readonly watch: RuntimeWatch
  readonly prober: Prober
  readonly knowledge: RuntimeKnowledge
  readonly images: ImagePuller
  readonly awaited: AwaitedPods
  readonly desired: DesiredPods
  /** The work about the host as a whole. */
  readonly node: NodeWork
  readonly reconciler: Reconciler
}

export function createLoops(options: PodSystemOptions): Loops {
  const { clock, random, logger, events, host, settings, objects } = options
  const statuses: StatusStore = new StatusStore(
    (options.shown ?? new ShownResources(clock.wallMs())).pods,
    options.presentPod,
  )
  const snapshots: SourceSnapshots = new SourceSnapshots({
    sources: options.sources,
    podNameSuffix: settings.podNameSuffix === 'node' ? `-${host.hostName}` : '',
    objects,
    listClaimOwners: () => host.volumes.listClaimOwners(),
    maxPods: settings.maxPods,
    workers: () => desired.workers,
    endedByDown: (key) => desired.endedByDown(key),
    logger,
  })
  const loop: SyncLoop = new SyncLoop(
    {
      snapshot: ({ snapshot }) => reconciler.takeSnapshot(snapshot),
      runtime: ({ uid }) => {
        const worker = desired.workers.get(uid)
        if (worker === undefined) reconciler.takeUnrecorded(uid)
        else worker.notice()
      },
      health: ({ health }) => reconciler.takeHealth(health.healthy ? undefined : health.message),
      stage: ({ worker }) => {
        if (worker.state.stage === 'stopped') prober.removePod(worker.ref.uid)
        if (worker.state.stage === 'gone') {
          prober.removePod(worker.ref.uid)
          observer.forgetPod(worker.ref.uid)
        }
        desired.onStage(worker)
        // It has ended after the drain was undone, or was ended by one that the host's power cut.
        if (worker.state.record.failed?.until === 'shutdown-ends') node.readmitDrained()
      },
      probe: ({ uid }) => desired.workers.get(uid)?.notice(),
    },
    { clock, logger },
  )
  const observer: RuntimeObserver = new RuntimeObserver({
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
  const watch: RuntimeWatch = new RuntimeWatch({
    clock,
    pulse: options.pulse,
    // The first report of the loss has the better reason.
    onGap: (message) => observer.reportGone(reconciler.runtimeProblem ?? message),
    onFrozen: options.onRuntimeFrozen,
  })
  const prober: Prober = new Prober({
    clock,
    random,
    runProbe: options.runProbe,
    events,
    onResult: ({ uid }) => loop.post({ kind: 'probe', uid }),
  })
  const knowledge: RuntimeKnowledge = new RuntimeKnowledge({
    runtime: options.runtime,
    clock,
    logger,
    isUp: () => reconciler.isRuntimeUp,
    onLearnt: () => desired.reviewFeatures(),
    onReadiness: () => reconciler.takeReadiness(),
  })
  const images: ImagePuller = createImagePuller(options, {
    makeRoom: async (signal) => node.imageGarbage?.collect({ kind: 'thresholds' }, signal),
    onPulling: (uid) => desired.workers.get(uid)?.showPull(),
  })
  const awaited: AwaitedPods = new AwaitedPods({
    statuses,
    adopted: () => desired.workers.all(),
    host,
    clock,
    logger,
    runtimeName: options.runtimeName,
  })
  const surroundings: WorkerSurroundings = {
    options: { ...options, host: noteSandboxes(host, { observer, knowledge }) },
    turns: new SharedTurns(clock),
    images,
    observer,
    prober,
    statuses,
    knowledge,
    onStage: (worker) => loop.post({ kind: 'stage', worker }),
    reviewAdmission: () => desired.reviewAdmission(),
    runtimeProblem: () => reconciler.runtimeProblem,
    runtimeLosses: () => {
      watch.look()
      return observer.losses
    },
    objectsKnown: () => reconciler.objectsKnown,
  }
  const desired: DesiredPods = new DesiredPods({
    images,
    takeShown: (key) => awaited.take(key),
    podFromManifest,
    missingReference: (sourced) => findMissingReference(host, sourced),
    checkStart: (pod, before) => checkStart(options, pod, before),
    clock,
    logger,
    admission: new PodAdmission(options.admission ?? openRules({ maxPods: settings.maxPods }), {
      objects,
      features: () => knowledge.features,
      nodeRefusal: (pod) => node.refusal(pod),
    }),
    observedPods: () => observer.pods(),
    observedNamed: (key) => observer.podsNamed(key),
    makeWorker: (input) => makePodWorker(surroundings, input),
  })
  const node: NodeWork = new NodeWork(options, {
    workers: () => desired.workers.all(),
    observed: () => observer.pods(),
    isListed: () => reconciler.listed,
    isRuntimeUp: () => reconciler.runtimeProblem === undefined,
    knowsAllPods: () => reconciler.knowsAllPods,
    namedImages: () => listNamedImages(desired.workers.all(), snapshots.all()),
    isRemoved: (pod) => desired.workers.fateOf(pod, false) === 'end',
    endOrphans: () => reconciler.endOrphans(),
    readmit: (now) => desired.readmitEvicted(now),
    reviewAdmission: () => desired.reviewAdmission(),
  })
  const reconciler: Reconciler = new Reconciler({
    snapshots,
    desired,
    awaited,
    knowledge,
    archives: options.archives,
    node,
    hasSources: options.sources.length > 0,
    events,
  })
  return {
    statuses,
    snapshots,
    loop,
    observer,
    watch,
    prober,
    knowledge,
    images,
    awaited,
    desired,
    node,
    reconciler,
  }
}
