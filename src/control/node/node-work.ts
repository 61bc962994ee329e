import type { GarbageItem } from '../../api/images.ts'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import type { Changes } from '../../base/waits.ts'
import type { PoddConfig } from '../../config/options.ts'
import { listThresholds } from '../../decide/node/judge-pressure.ts'
import type { NodeRefusal } from '../../decide/node/judge-pressure.ts'
import { defaultContainerPolicy } from '../../decide/node/plan-container-garbage.ts'
import type { ContainerGarbagePolicy } from '../../decide/node/plan-container-garbage.ts'
import type { ImageGarbagePolicy, ImageUse } from '../../decide/node/plan-image-garbage.ts'
import type { LogLimits } from '../../decide/node/plan-logs.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { ObservedPod } from '../../pod/state/observed.ts'
import type { EventRecorder, NodeEventRecorder } from '../../pod/state/pod-event.ts'
import type { EvictionEnd } from '../../pod/state/pod-record.ts'
import type { PodUid } from '../../pod/values/ids.ts'
import type { RuntimeService } from '../../runtime/cri-runtime.ts'
import { createStateReport } from '../../store/state-report.ts'
import type { RuntimeObserver } from '../runtime/runtime-observer.ts'
import type { RuntimeKnowledge, SystemState } from '../runtime/runtime-watch.ts'
import { ImageGarbage } from '../images/image-garbage.ts'
import type { ImageGarbageOptions } from '../images/image-garbage.ts'
import type { PodHost } from '../pod/host.ts'
import type { PodWorker } from '../pod/worker.ts'
import { NodeDrain } from './drain.ts'
import type { DrainMark, NodeDrainOptions } from './drain.ts'
import { followAddressJob, followHostJob } from './follow-host.ts'
import {
  collectsImages,
  containerCollectionJob,
  ContainerGarbage,
  garbageEvent,
  imageCollectionJob,
} from './garbage.ts'
import { logLimitsJob, logRotationJob } from './logs.ts'
import type { LogSpace } from './logs.ts'
import { storageMeter, volumeLimitsJob } from './measure-pods.ts'
import type { PressureSurroundings, VolumeLimitsDeps } from './measure-pods.ts'
import { NodeJobs } from './node-jobs.ts'
import type { NodeJob } from './node-jobs.ts'
import { orphanCollectionJob, Orphans } from './orphans.ts'
import type { OrphansOptions } from './orphans.ts'
import { NodePressure } from './pressure.ts'
import type { NodePressureOptions } from './pressure.ts'

/** The dependencies of the work about the host. */
export interface NodeWorkOptions {
  readonly host: PodHost
  readonly runtime: RuntimeService
  readonly events: EventRecorder & NodeEventRecorder
  readonly clock: Clock
  readonly logger: Logger
  readonly settings: NodePressureOptions['settings'] &
    NodeDrainOptions['settings'] &
    Pick<PoddConfig, 'syncFrequencyMs'>
  /** Left out, images are never removed. */
  readonly imageGarbage?: Pick<ImageGarbageOptions, 'host' | 'policy' | 'usesFile'> & {
    readonly events: NodeEventRecorder
  }
  /** Left out, the host is never drained. */
  readonly drain?: { readonly mark: DrainMark; readonly events: NodeEventRecorder }
  /** Left out, no pod is evicted because of node pressure. */
  readonly pressure?: { readonly surroundings: PressureSurroundings; readonly events: NodeEventRecorder }
  /** Left out, the size of all logs is not limited. */
  readonly logSpace?: LogSpace
  /** Which exited containers are kept; left out, as the kubelet's defaults have it. */
  readonly containerPolicy?: ContainerGarbagePolicy
  /** The collectors of orphans, and when to run them. */
  readonly orphans?: Pick<OrphansOptions, 'collectors' | 'makingSinceMs'> & {
    readonly disturbances: () => number
  }
  /** Further node jobs. */
  readonly jobs?: readonly NodeJob[]
  /** Left out, containers' logs are not rotated. */
  readonly logRotation?: { readonly limits: LogLimits; readonly workers: number; readonly periodMs: number }
}

/** What the work about the host needs of the pods. */
export interface NodePods {
  readonly workers: () => Iterable<PodWorker>
  /** Noted whenever a pod, or what was observed, has changed. */
  readonly changes: Changes
  /** What runs. */
  readonly observer: Pick<RuntimeObserver, 'pods'>
  readonly state: Readonly<Pick<SystemState, 'isListed'>>
  readonly knowledge: Pick<RuntimeKnowledge, 'runtimeProblem'>
  /** Whether the running and the desired pods are known. */
  readonly knowsAllPods: () => boolean
  /** The images that pods name, of all workers and sources. */
  readonly namedImages: () => readonly ImageUse[]
  /** Whether a pod in the runtime without a worker is in no source. */
  readonly isRemoved: (pod: ObservedPod) => boolean
  /** Ends orphaned pods. */
  readonly endOrphans: () => void
  /** Starts pods that were evicted until this event. */
  readonly readmit: (now: EvictionEnd) => void
  /** The results of admission may change. */
  readonly reviewAdmission: () => void
  /** Pods that were left out may be followed now. */
  readonly reviewSources: () => void
}

/** The work about the host as a whole: its periodic jobs, garbage, pressure and drain. */
export class NodeWork {
  readonly jobs: NodeJobs
  /** Undefined where images are never removed. */
  readonly imageGarbage: ImageGarbage | undefined
  /** Undefined where the host is never drained. */
  readonly drain: NodeDrain | undefined
  /** Undefined where no pod is evicted. */
  readonly pressure: NodePressure | undefined = undefined
  readonly #events: NodeEventRecorder
  readonly #pods: NodePods
  readonly #containerGarbage: ContainerGarbage
  readonly #orphans: Orphans

  constructor(options: NodeWorkOptions, pods: NodePods) {
    const { clock, logger, settings, orphans } = options
    const { workers, reviewAdmission, changes } = pods
    this.#events = options.events
    this.#pods = pods
    this.imageGarbage =
      options.imageGarbage &&
      new ImageGarbage({
        ...options.imageGarbage,
        report: createStateReport(options.imageGarbage.events, logger),
        namedImages: () => (pods.knowsAllPods() ? pods.namedImages() : undefined),
        clock,
        logger,
      })
    this.#containerGarbage = new ContainerGarbage({
      workers,
      observedPods: () => (pods.state.isListed ? pods.observer.pods() : new Map()),
      isRemoved: pods.isRemoved,
      endOrphans: pods.endOrphans,
      allSourcesReady: pods.knowsAllPods,
      policy: options.containerPolicy ?? defaultContainerPolicy,
      changes,
      clock,
    })
    this.#orphans = new Orphans({
      collectors: orphans?.collectors ?? [],
      makingSinceMs: orphans?.makingSinceMs ?? (() => undefined),
      clock,
      logger,
    })
    const onChange = (): void => {
      this.readmitDrained()
      reviewAdmission()
    }
    this.drain =
      options.drain &&
      new NodeDrain({ ...options.drain, settings, workers, onChange, changes, clock, logger })
    if (options.pressure !== undefined && listThresholds(settings).length > 0)
      this.pressure = new NodePressure({
        ...options.pressure,
        settings,
        workers,
        changes,
        collectImages: (signal) => this.#collectForRoom(signal),
        onShortages: reviewAdmission,
        onRelaxed: () => pods.readmit('pressure-ends'),
        clock,
        logger,
      })
    this.jobs = createNodeJobs({
      ...options,
      ...pods,
      jobs: [...this.#ownJobs(options), ...(options.jobs ?? [])],
      pressureJob: this.pressure?.job(),
      measureStorage: options.pressure && storageMeter(options.pressure.surroundings),
      imageGarbage: options.imageGarbage &&
        this.imageGarbage && { ...options.imageGarbage, garbage: this.imageGarbage },
    })
  }

  #ownJobs({ host, settings, orphans, events, clock, logger }: NodeWorkOptions): readonly NodeJob[] {
    const { workers, state, knowledge, reviewAdmission, reviewSources } = this.#pods
    const isReady = (): boolean => state.isListed && knowledge.runtimeProblem === undefined
    const review = (): void => {
      reviewSources()
      reviewAdmission()
    }
    return [
      syncPodsJob({ workers, review, isReady, periodMs: settings.syncFrequencyMs }),
      followHostJob({ host, workers, periodMs: settings.syncFrequencyMs, logger }),
      followAddressJob({
        hostIps: () => host.hostIps(),
        workers,
        onChange: () => this.jobs.wake('follow-host'),
        periodMs: settings.syncFrequencyMs,
        events,
      }),
      containerCollectionJob({ garbage: this.#containerGarbage, isReady, events }),
      orphanCollectionJob({
        orphans: this.#orphans,
        isReady,
        disturbances: orphans?.disturbances ?? (() => 0),
        events,
        clock,
      }),
    ]
  }

  /** Has it known what the host is short of before the first pod is admitted. Never throws. */
  async begin(): Promise<void> {
    await this.pressure?.begin()
  }

  /** Why the host admits no such pod now; undefined where it does. */
  refusal(pod: Pick<Pod, 'spec'>): NodeRefusal | undefined {
    return this.drain?.refusal() ?? this.pressure?.refusal(pod)
  }

  /** The host's resolver changed, and with it perhaps its address. */
  followHost(): void {
    for (const name of ['follow-address', 'follow-host'] as const) this.jobs.wake(name)
  }

  /** Readmits pods after a drain: the host was rebooted, or the drain undone. */
  readmitDrained(): void {
    if (this.drain?.isDraining !== true) this.#pods.readmit('shutdown-ends')
  }

  /**
   * Removes, or lists, garbage other than images: exited containers and stopped sandboxes beyond the limits, and
   * orphans.
   */
  async collectGarbage(
    { dryRun }: { readonly dryRun: boolean },
    signal: AbortSignal,
  ): Promise<readonly GarbageItem[]> {
    if (dryRun) return [...this.#containerGarbage.preview(), ...(await this.#orphans.preview(signal)).items]
    const containers = await this.#containerGarbage.collect({ evictNonDeletedPods: false }, signal)
    const { items } = await this.#orphans.collect(signal)
    for (const event of [
      garbageEvent('ContainersRemoved', containers),
      garbageEvent('OrphansRemoved', items),
    ])
      if (event !== undefined) this.#events.recordNode(event)
    return [...containers, ...items]
  }

  /** Frees space on a nearly full disk without terminating a pod. */
  async #collectForRoom(signal: AbortSignal): Promise<void> {
    await this.#containerGarbage.collect({ evictNonDeletedPods: true }, signal)
    if (this.#pods.knowsAllPods()) await this.imageGarbage?.collect({ kind: 'unused', young: false }, signal)
  }
}

export interface NodeJobsSetup extends Pick<
  NodePods,
  'workers' | 'observer' | 'state' | 'knowledge' | 'knowsAllPods'
> {
  readonly host: {
    readonly volumes: Pick<PodHost['volumes'], 'measureEmptyDir'>
    readonly logs: Pick<PodHost['logs'], 'directory'>
  }
  readonly runtime: Pick<RuntimeService, 'reopenContainerLog'>
  /** Left out, containers' logs are not rotated. */
  readonly logRotation?: { readonly limits: LogLimits; readonly workers: number; readonly periodMs: number }
  /** Left out, the size of all logs is not limited. */
  readonly logSpace?: LogSpace
  /** Jobs that were created elsewhere. */
  readonly jobs: readonly NodeJob[]
  readonly pressureJob: NodeJob | undefined
  /** Left out, limits of `ephemeral-storage` have no effect. */
  readonly measureStorage?: VolumeLimitsDeps['measureStorage']
  readonly imageGarbage:
    | {
        readonly garbage: ImageGarbage
        readonly policy: ImageGarbagePolicy
        readonly events: NodeEventRecorder
      }
    | undefined
  readonly clock: Clock
  readonly logger: Logger
}

/** The periodic jobs of the node; unconfigured ones are left out. */
function createNodeJobs(setup: NodeJobsSetup): NodeJobs {
  const {
    host,
    runtime,
    workers,
    observer,
    state,
    knowledge,
    logRotation,
    logSpace,
    imageGarbage,
    clock,
    logger,
  } = setup
  const isRuntimeUp = (): boolean => knowledge.runtimeProblem === undefined
  const jobs = new NodeJobs({ clock, logger })
  for (const job of setup.jobs) jobs.add(job)
  jobs.add(
    volumeLimitsJob({
      workers,
      measure: (uid, volume) => host.volumes.measureEmptyDir(uid, volume),
      measureStorage: setup.measureStorage,
      clock,
      logger,
    }),
  )
  if (setup.pressureJob !== undefined) jobs.add(setup.pressureJob)
  if (logRotation !== undefined)
    jobs.add(
      logRotationJob({
        pods: () => (isRuntimeUp() ? observer.pods().values() : []),
        directory: (pod, container) => `${host.logs.directory(pod)}/${container}`,
        reopen: async (containerId, signal) => {
          await runtime.reopenContainerLog({ containerId }, { signal })
        },
        clock,
        ...logRotation,
      }),
    )
  if (logSpace !== undefined)
    jobs.add(
      logLimitsJob({
        // The images of running, desired and terminating pods are known.
        pods: () =>
          state.isListed && isRuntimeUp()
            ? [...observer.pods().values(), ...[...workers()].map(({ ref }) => ref)]
            : undefined,
        measure: (pods) => logSpace.measure(pods),
        remove: (path) => logSpace.remove(path),
        totalBytes: () => logSpace.totalBytes(),
        availableBytes: () => logSpace.availableBytes(),
        keptMs: logSpace.keptMs,
        clock,
        logger,
      }),
    )
  if (imageGarbage !== undefined && collectsImages(imageGarbage.policy))
    jobs.add(
      imageCollectionJob({
        garbage: imageGarbage.garbage,
        isReady: setup.knowsAllPods,
        isRuntimeUp,
        events: imageGarbage.events,
      }),
    )
  return jobs
}

/** In how many parts the pods are synced in a period: with the default period, whenever other jobs run too. */
const maxParts = 6

/**
 * Syncs each pod once in a period without an event, as the kubelet does (`pkg/kubelet/pod_workers.go`, resyncInterval,
 * 1.36), spread over the period; and decides again on pods that wait to be admitted.
 */
function syncPodsJob(options: {
  readonly workers: () => Iterable<Pick<PodWorker, 'ref' | 'sync'>>
  /** Decides again which pods are followed and admitted. */
  readonly review: () => void
  /** The runtime was listed, and takes calls. */
  readonly isReady: () => boolean
  readonly periodMs: number
}): NodeJob {
  const { workers, review, isReady, periodMs } = options
  const parts = Math.min(maxParts, Math.max(1, Math.floor(periodMs / 1000)))
  let part = 0
  return {
    name: 'sync-pods',
    periodMs: periodMs / parts,
    deadlineMs: 60_000,
    async run(signal) {
      if (!isReady()) return
      part = (part + 1) % parts
      if (part === 0) review()
      for (const worker of workers()) {
        if (partOf(worker.ref.uid, parts) !== part) continue
        signal.throwIfAborted()
        await worker.sync()
      }
    },
  }
}

/** The same one for as long as the pod lives, and as many pods in each. */
function partOf(uid: PodUid, parts: number): number {
  let sum = 0
  for (const character of uid) sum += character.codePointAt(0) ?? 0
  return sum % parts
}
