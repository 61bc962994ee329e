import type { GarbageItem } from '../../api/images.ts'
import type { Clock } from '../../base/clock.ts'
import { errorMessage, PoddError } from '../../base/errors.ts'
import { formatBytes } from '../../base/text.ts'
import type { Changes } from '../../base/waits.ts'
import { planContainerGarbage } from '../../decide/node/plan-container-garbage.ts'
import type {
  ContainerGarbage as Garbage,
  ContainerGarbagePolicy,
  GarbagePod,
  GarbageReason,
} from '../../decide/node/plan-container-garbage.ts'
import { usedPercent } from '../../decide/node/plan-image-garbage.ts'
import type { ImageGarbagePolicy } from '../../decide/node/plan-image-garbage.ts'
import type { ObservedPod } from '../../pod/state/observed.ts'
import type { NodeEvent, NodeEventRecorder } from '../../pod/state/pod-event.ts'
import type { PodUid } from '../../pod/values/ids.ts'
import { describeFailures, nameOf } from '../images/image-garbage.ts'
import type { ImageCollection, ImageGarbage } from '../images/image-garbage.ts'
import type { PodWorker } from '../pod/worker.ts'
import type { NodeJob } from './node-jobs.ts'

export interface ContainerGarbageOptions {
  readonly workers: () => Iterable<PodWorker>
  /** The content of the runtime, by pod. */
  readonly observedPods: () => ReadonlyMap<PodUid, ObservedPod>
  /** Whether a pod in the runtime without a worker is in no source, rather than having an unreadable record. */
  readonly isRemoved: (pod: ObservedPod) => boolean
  /** Ends orphaned pods. */
  readonly endOrphans: () => void
  readonly allSourcesReady: () => boolean
  readonly policy: ContainerGarbagePolicy
  /** Of the pods, and of what was observed. */
  readonly changes: Changes
  readonly clock: Clock
}

/** The workers' deadline for the removal. */
const patienceMs = 30_000

const messages: Readonly<Record<GarbageReason, string>> = {
  removed: 'its pod was removed',
  terminated: 'its pod has terminated',
  'container-limit': 'more exited containers than maximumDeadContainersPerContainer',
  'total-limit': 'more exited containers than maximumDeadContainers',
  superseded: 'a newer one has replaced it',
}

/**
 * Exited containers and stopped sandboxes by the kubelet's limits. Each pod's worker removes those of its pod, together
 * with their logs: it alone knows what the pod still needs.
 */
export class ContainerGarbage {
  readonly #options: ContainerGarbageOptions

  constructor(options: ContainerGarbageOptions) {
    this.#options = options
  }

  /** The containers and sandboxes that a collection would remove now. */
  preview(): readonly GarbageItem[] {
    return this.#plan(false).flatMap((garbage) => itemsOf(garbage, 'planned'))
  }

  /**
   * Has the workers remove them, and waits until that is observed, for at most 30 s.
   * @param options.evictNonDeletedPods terminated pods keep no container either
   * @throws the signal's reason
   */
  async collect(
    options: { readonly evictNonDeletedPods: boolean },
    signal: AbortSignal,
  ): Promise<readonly GarbageItem[]> {
    const { changes, clock, endOrphans } = this.#options
    const plan = this.#plan(options.evictNonDeletedPods)
    if (plan.length === 0) return []
    endOrphans()
    const workers = new Map([...this.#options.workers()].map((worker) => [worker.ref.uid, worker]))
    for (const garbage of plan) workers.get(garbage.pod.uid)?.collect(idsOf(garbage))
    await changes.until(() => !plan.some((garbage) => this.#isLeft(garbage)), clock, patienceMs, signal)
    return plan.flatMap((garbage) => itemsOf(garbage, this.#isLeft(garbage) ? 'failed' : 'removed'))
  }

  #plan(evictNonDeletedPods: boolean): readonly Garbage[] {
    const { allSourcesReady, clock, policy } = this.#options
    const facts = { pods: this.#gather(), allSourcesReady: allSourcesReady(), evictNonDeletedPods }
    return planContainerGarbage(facts, policy, clock.wallMs())
  }

  /** Pods that are being removed are skipped. */
  #gather(): readonly GarbagePod[] {
    const { isRemoved, observedPods, workers } = this.#options
    const known = new Set<PodUid>()
    const pods: GarbagePod[] = []
    for (const { ref, state } of workers()) {
      known.add(ref.uid)
      if (state.record.ending !== undefined || state.stage === 'stopped' || state.stage === 'gone') continue
      pods.push({ observed: state.observed, fate: state.isOver ? 'terminated' : 'live' })
    }
    for (const [uid, observed] of observedPods())
      if (!known.has(uid)) pods.push({ observed, fate: isRemoved(observed) ? 'removed' : 'live' })
    return pods
  }

  #isLeft(garbage: Garbage): boolean {
    const ids = idsOf(garbage)
    const { uid } = garbage.pod
    const worker = [...this.#options.workers()].find(({ ref }) => ref.uid === uid)
    const now = worker === undefined ? this.#options.observedPods().get(uid) : worker.state.observed
    return now !== undefined && [...now.containers, ...now.sandboxes].some(({ id }) => ids.has(id))
  }
}

function idsOf({ containers, sandboxes }: Garbage): ReadonlySet<string> {
  return new Set([
    ...containers.map(({ container }) => container.id),
    ...sandboxes.map(({ sandbox }) => sandbox.id),
  ])
}

function itemsOf({ pod, containers, sandboxes }: Garbage, outcome: GarbageItem['outcome']): GarbageItem[] {
  const name = `${pod.namespace}/${pod.name}`
  return [
    ...containers.map(({ container, reason }) => ({
      kind: 'container',
      id: container.id,
      name: `${name} ${container.name}#${container.restartCount}`,
      reason,
      message: messages[reason],
      outcome,
    })),
    ...sandboxes.map(({ sandbox, reason }) => ({
      kind: 'sandbox',
      id: sandbox.id,
      name: `${name} #${sandbox.attempt}`,
      reason,
      message: messages[reason],
      outcome,
    })),
  ]
}

/** `pkg/kubelet/kubelet.go`, ContainerGCPeriod, 1.36. */
const periodMs = 60_000
const deadlineMs = 120_000

export interface ContainerCollectionJobOptions {
  readonly garbage: Pick<ContainerGarbage, 'collect'>
  /** Whether the runtime was listed and answers. */
  readonly isReady: () => boolean
  readonly events: NodeEventRecorder
}

/**
 * Removes exited containers and stopped sandboxes beyond the limits (`pkg/kubelet/kubelet.go`, StartGarbageCollection,
 * 1.36): those of one container are removed after each restart, and here where that failed or a container was too
 * young; here alone those beyond the total.
 */
export function containerCollectionJob(options: ContainerCollectionJobOptions): NodeJob {
  const { events, garbage, isReady } = options
  return {
    name: 'collect-containers',
    periodMs,
    deadlineMs,
    async run(signal) {
      if (!isReady()) return
      const items = await garbage.collect({ evictNonDeletedPods: false }, signal)
      const event = garbageEvent('ContainersRemoved', items)
      if (event !== undefined) events.recordNode(event)
      const failed = items.filter(({ outcome }) => outcome === 'failed')
      if (failed.length > 0) throw failure(failed)
    },
  }
}

function failure(failed: readonly GarbageItem[]): PoddError {
  const names = failed.map(({ kind, name }) => `${kind} ${name}`).join(', ')
  return new PoddError('GARBAGE_NOT_COLLECTED', `not removed within 30 s: ${names}`)
}

/** `pkg/kubelet/kubelet.go`, ImageGCPeriod, 1.36. */
const imagePeriodMs = 300_000
/** Removing gigabytes from an SD card takes minutes. */
const imageDeadlineMs = 1_200_000
/** The most names in one event. */
const toldNames = 10

export interface ImageCollectionJobOptions {
  readonly garbage: Pick<ImageGarbage, 'collect' | 'look'>
  /** Whether the images that pods need are known; before that images are only observed. */
  readonly isReady: () => boolean
  /** Whether the runtime can be asked. */
  readonly isRuntimeUp: () => boolean
  readonly events: NodeEventRecorder
  readonly periodMs?: number
}

/**
 * Keeps the disk that holds the images from filling up with them, with the kubelet's events
 * (`pkg/kubelet/kubelet.go`, StartGarbageCollection, and `pkg/kubelet/images/image_gc_manager.go`, GarbageCollect, 1.36):
 * `ImageGCFailed` from the second failure in a row on.
 */
export function imageCollectionJob(options: ImageCollectionJobOptions): NodeJob {
  const { events, garbage } = options
  let hasFailed = false
  return {
    name: 'collect-images',
    periodMs: options.periodMs ?? imagePeriodMs,
    deadlineMs: imageDeadlineMs,
    async run(signal) {
      if (!options.isRuntimeUp()) return
      try {
        if (options.isReady()) await collect(garbage, events, signal)
        else await garbage.look(signal)
        hasFailed = false
      } catch (error) {
        signal.throwIfAborted()
        if (hasFailed)
          events.recordNode({ type: 'Warning', reason: 'ImageGCFailed', message: errorMessage(error) })
        hasFailed = true
        throw error
      }
    },
  }
}

/** Whether the policy removes anything by itself (`pkg/kubelet/kubelet.go`, StartGarbageCollection, 1.36). */
export function collectsImages({ highThresholdPercent, maximumAgeMs }: ImageGarbagePolicy): boolean {
  return highThresholdPercent < 100 || maximumAgeMs > 0
}

async function collect(
  garbage: Pick<ImageGarbage, 'collect'>,
  events: NodeEventRecorder,
  signal: AbortSignal,
): Promise<void> {
  const collection = await garbage.collect({ kind: 'thresholds' }, signal)
  const { disk, removed, goalBytes, availableBytes, freedBytes } = collection
  if (disk.capacityBytes === 0) {
    const message = 'invalid capacity 0 on image filesystem'
    events.recordNode({ type: 'Warning', reason: 'InvalidDiskCapacity', message })
    throw new PoddError('IMAGES_NOT_COLLECTED', message)
  }
  if (removed.length > 0) events.recordNode(removedEvent(collection))
  const failures = describeFailures(collection)
  if (failures !== undefined)
    throw new PoddError('IMAGES_NOT_COLLECTED', `images cannot be removed: ${failures}`)
  if (goalBytes === undefined || availableBytes >= goalBytes) return
  const message = `Insufficient free disk space on the node's image filesystem (${usedPercent(disk)}% of ${formatBytes(disk.capacityBytes)} used). Failed to free sufficient space by deleting unused images (freed ${freedBytes} bytes). Investigate disk usage, as it could be used by active images, logs, volumes, or other data.`
  events.recordNode({ type: 'Warning', reason: 'FreeDiskSpaceFailed', message })
  throw new PoddError('IMAGES_NOT_COLLECTED', message)
}

/** podd's own event: the kubelet only logs it. */
function removedEvent({ removed, freedBytes }: ImageCollection) {
  const names = removed.slice(0, toldNames).map(({ image }) => nameOf(image))
  const more = removed.length > toldNames ? ` and ${removed.length - toldNames} more` : ''
  const message = `Removed unused images to free ${formatBytes(freedBytes)}: ${names.join(', ')}${more}`
  return { type: 'Normal', reason: 'ImagesRemoved', message } as const
}

/** The event of what was removed; undefined where nothing was. podd's own: the kubelet only logs it. */
export function garbageEvent(reason: string, items: readonly GarbageItem[]): NodeEvent | undefined {
  const removed = items.filter(({ outcome }) => outcome === 'removed')
  if (removed.length === 0) return undefined
  const names = removed.slice(0, toldNames).map(({ kind, name, message }) => `${kind} ${name} (${message})`)
  const more = removed.length > toldNames ? ` and ${removed.length - toldNames} more` : ''
  return { type: 'Normal', reason, message: `Removed ${names.join(', ')}${more}` }
}
