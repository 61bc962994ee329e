import type { GarbageItem } from '../../api/images.ts'
import type { PoddConfig } from '../../config/options.ts'
import { listThresholds } from '../../decide/node/judge-pressure.ts'
import type { NodeRefusal } from '../../decide/node/judge-pressure.ts'
import type { LogLimits } from '../../decide/node/plan-logs.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { PodUid } from '../../pod/values/ids.ts'
import type { ImageGarbage, ImageGarbageSetup } from '../images/image-garbage.ts'
import type { PodEnv } from '../pod/env.ts'
import type { PodWorker } from '../pod/worker.ts'
import { createDrain } from './drain.ts'
import type { DrainMark, NodeDrain } from './drain.ts'
import { followAddressJob, followHostJob } from './follow-host.ts'
import {
  collectsImages,
  containerCollectionJob,
  ContainerGarbage,
  imageCollectionJob,
  recordRemoved,
} from './garbage.ts'
import { logLimitsJob, logRotationJob } from './logs.ts'
import type { LogSpace } from './logs.ts'
import { storageMeter, volumeLimitsJob } from './measure-pods.ts'
import type { PressureMeter } from './measure-pods.ts'
import { NodeJobs } from './node-jobs.ts'
import type { NodeJob, NodePods } from './node-jobs.ts'
import { orphanCollectionJob, Orphans } from './orphans.ts'
import type { OrphanSearch } from './orphans.ts'
import { NodePressure } from './pressure.ts'

/** What the work about the host reads, removes and is limited to. */
export interface NodeSetup {
  readonly imageGarbage: ImageGarbageSetup
  readonly drainMark: DrainMark
  readonly pressure: PressureMeter
  readonly logSpace: LogSpace
  /** The collectors of orphans, and how often something may have been left behind so far. */
  readonly orphans: OrphanSearch & { readonly disturbances: () => number }
  readonly jobs: readonly NodeJob[]
  /** Undefined where containers' logs are not rotated. */
  readonly logRotation:
    | { readonly limits: LogLimits; readonly workers: number; readonly periodMs: number }
    | undefined
}

/** The work about the host as a whole: its periodic jobs, garbage, pressure and drain. */
export class NodeWork {
  readonly jobs: NodeJobs
  readonly imageGarbage: ImageGarbage
  readonly drain: NodeDrain
  /** Undefined where no pod is evicted. */
  readonly pressure: NodePressure | undefined
  readonly #env: PodEnv
  readonly #pods: NodePods
  readonly #containerGarbage: ContainerGarbage
  readonly #orphans: Orphans

  constructor(
    env: PodEnv,
    setup: NodeSetup,
    settings: PoddConfig,
    imageGarbage: ImageGarbage,
    pods: NodePods,
  ) {
    const { clock, logger } = env
    this.#env = env
    this.#pods = pods
    this.imageGarbage = imageGarbage
    this.#containerGarbage = new ContainerGarbage(env, pods)
    this.#orphans = new Orphans({ ...setup.orphans, clock, logger })
    this.drain = createDrain(env, settings, setup.drainMark, pods.workers, () => {
      this.readmitDrained()
      pods.reviewAdmission()
    })
    if (listThresholds(settings).length > 0)
      this.pressure = new NodePressure({
        ...env,
        settings,
        meter: setup.pressure,
        workers: pods.workers,
        collectImages: (signal) => this.#collectForRoom(signal),
        onShortages: pods.reviewAdmission,
        onRelaxed: () => pods.readmit('pressure-ends'),
      })
    this.jobs = new NodeJobs({ clock, logger })
    for (const job of this.#listJobs(setup, settings.syncFrequencyMs)) this.jobs.add(job)
  }

  *#listJobs(setup: NodeSetup, periodMs: number): Iterable<NodeJob> {
    const { observer, knowledge, system, events, clock, logger, logs, volumes, calls } = this.#env
    const { workers, knowsAllPods, reviewAdmission, reviewSources } = this.#pods
    const isRuntimeUp = (): boolean => knowledge.runtimeProblem === undefined
    const isReady = (): boolean => system.isListed && isRuntimeUp()
    const review = (): void => {
      reviewSources()
      reviewAdmission()
    }
    yield syncPodsJob({ workers, review, isReady, periodMs })
    yield followHostJob(this.#env, workers, periodMs)
    yield followAddressJob({
      ...this.#env,
      workers,
      onChange: () => this.jobs.wake('follow-host'),
      periodMs,
    })
    yield containerCollectionJob(this.#containerGarbage, isReady, events)
    const { disturbances } = setup.orphans
    yield orphanCollectionJob({ orphans: this.#orphans, isReady, disturbances, events, clock })
    yield* setup.jobs
    yield volumeLimitsJob({
      workers,
      measure: (uid, volume) => volumes.measureEmptyDir(uid, volume),
      measureStorage: storageMeter(setup.pressure),
      clock,
      logger,
    })
    if (this.pressure !== undefined) yield this.pressure.job()
    if (setup.logRotation !== undefined)
      yield logRotationJob({
        ...setup.logRotation,
        pods: () => (isRuntimeUp() ? observer.pods().values() : []),
        directory: (pod, container) => `${logs.directory(pod)}/${container}`,
        reopen: async (containerId, signal) =>
          void (await calls.reopenContainerLog({ containerId }, { signal })),
        clock,
      })
    yield logLimitsJob({
      ...setup.logSpace,
      // The images of running, desired and terminating pods are known.
      pods: () =>
        isReady() ? [...observer.pods().values(), ...[...workers()].map(({ ref }) => ref)] : undefined,
      clock,
      logger,
    })
    if (collectsImages(setup.imageGarbage.policy))
      yield imageCollectionJob(this.imageGarbage, knowsAllPods, isRuntimeUp, events)
  }

  /** Has it known what the host is short of before the first pod is admitted. Never throws. */
  async begin(): Promise<void> {
    await this.pressure?.begin()
  }

  /** Why the host admits no such pod now; undefined where it does. */
  refusal(pod: Pick<Pod, 'spec'>): NodeRefusal | undefined {
    return this.drain.refusal() ?? this.pressure?.refusal(pod)
  }

  /** The host's resolver changed, and with it perhaps its address. */
  followHost(): void {
    for (const name of ['follow-address', 'follow-host'] as const) this.jobs.wake(name)
  }

  /** Readmits pods after a drain: the host was rebooted, or the drain undone. */
  readmitDrained(): void {
    if (!this.drain.isDraining && !this.#env.shutdown.isStopping) this.#pods.readmit('shutdown-ends')
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
    recordRemoved(this.#env.events, 'ContainersRemoved', containers)
    recordRemoved(this.#env.events, 'OrphansRemoved', items)
    return [...containers, ...items]
  }

  /** Frees space on a nearly full disk without terminating a pod. */
  async #collectForRoom(signal: AbortSignal): Promise<void> {
    await this.#containerGarbage.collect({ evictNonDeletedPods: true }, signal)
    if (this.#pods.knowsAllPods())
      await this.imageGarbage.collect({ kind: 'unused', young: false, later: true }, signal)
  }
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
