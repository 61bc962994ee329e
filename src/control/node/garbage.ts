import type { GarbageItem } from '../../api/images.ts'
import { errorMessage, PoddError } from '../../base/errors.ts'
import { formatBytes } from '../../base/text.ts'
import { planContainerGarbage } from '../../decide/node/plan-container-garbage.ts'
import type {
  ContainerGarbage as Garbage,
  GarbagePod,
  GarbageReason,
} from '../../decide/node/plan-container-garbage.ts'
import { usedPercent } from '../../decide/node/plan-image-garbage.ts'
import type { ImageGarbagePolicy } from '../../decide/node/plan-image-garbage.ts'
import type { NodeEventRecorder } from '../../pod/state/pod-event.ts'
import type { PodUid } from '../../pod/values/ids.ts'
import { describeFailures, nameOf } from '../images/image-garbage.ts'
import type { ImageCollection, ImageGarbage } from '../images/image-garbage.ts'
import type { PodEnv } from '../pod/env.ts'
import type { NodeJob, NodePods } from './node-jobs.ts'

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
  readonly #env: PodEnv
  readonly #pods: NodePods

  constructor(env: PodEnv, pods: NodePods) {
    this.#env = env
    this.#pods = pods
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
    const { changes, clock } = this.#env
    const plan = this.#plan(options.evictNonDeletedPods)
    if (plan.length === 0) return []
    this.#pods.endOrphans()
    const workers = new Map([...this.#pods.workers()].map((worker) => [worker.ref.uid, worker]))
    for (const garbage of plan) workers.get(garbage.pod.uid)?.collect(idsOf(garbage))
    await changes.until(() => !plan.some((garbage) => this.#isLeft(garbage)), clock, patienceMs, signal)
    return plan.flatMap((garbage) => itemsOf(garbage, this.#isLeft(garbage) ? 'failed' : 'removed'))
  }

  #plan(evictNonDeletedPods: boolean): readonly Garbage[] {
    const { containerPolicy, clock } = this.#env
    const allSourcesReady = this.#pods.knowsAllPods()
    const facts = { pods: this.#gather(), allSourcesReady, evictNonDeletedPods }
    return planContainerGarbage(facts, containerPolicy, clock.wallMs())
  }

  /** Pods that are being removed are skipped. */
  #gather(): readonly GarbagePod[] {
    const { isRemoved, workers } = this.#pods
    const known = new Set<PodUid>()
    const pods: GarbagePod[] = []
    for (const { ref, state } of workers()) {
      known.add(ref.uid)
      if (state.record.ending !== undefined || state.stage === 'stopped' || state.stage === 'gone') continue
      pods.push({ observed: state.observed, fate: state.isOver ? 'terminated' : 'live' })
    }
    const { system, observer } = this.#env
    for (const [uid, observed] of system.isListed ? observer.pods() : [])
      if (!known.has(uid)) pods.push({ observed, fate: isRemoved(observed) ? 'removed' : 'live' })
    return pods
  }

  #isLeft(garbage: Garbage): boolean {
    const ids = idsOf(garbage)
    const { uid } = garbage.pod
    const worker = [...this.#pods.workers()].find(({ ref }) => ref.uid === uid)
    const now = worker === undefined ? this.#env.observer.pods().get(uid) : worker.state.observed
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
  const item = (kind: string, id: string, name: string, reason: GarbageReason): GarbageItem => ({
    kind,
    id,
    name: `${pod.namespace}/${pod.name} ${name}`,
    reason,
    message: messages[reason],
    outcome,
  })
  return [
    ...containers.map(({ container: { id, name, restartCount }, reason }) =>
      item('container', id, `${name}#${restartCount}`, reason),
    ),
    ...sandboxes.map(({ sandbox: { id, attempt }, reason }) => item('sandbox', id, `#${attempt}`, reason)),
  ]
}

/** `pkg/kubelet/kubelet.go`, ContainerGCPeriod, 1.36. */
const periodMs = 60_000
const deadlineMs = 120_000

/**
 * Removes exited containers and stopped sandboxes beyond the limits (`pkg/kubelet/kubelet.go`, StartGarbageCollection,
 * 1.36): those of one container are removed after each restart, and here where that failed or a container was too
 * young; here alone those beyond the total.
 * @param isReady whether the runtime was listed and answers
 */
export function containerCollectionJob(
  garbage: ContainerGarbage,
  isReady: () => boolean,
  events: NodeEventRecorder,
): NodeJob {
  return {
    name: 'collect-containers',
    periodMs,
    deadlineMs,
    async run(signal) {
      if (!isReady()) return
      const items = await garbage.collect({ evictNonDeletedPods: false }, signal)
      recordRemoved(events, 'ContainersRemoved', items)
      const failed = items.filter(({ outcome }) => outcome === 'failed')
      const names = failed.map(({ kind, name }) => `${kind} ${name}`).join(', ')
      if (failed.length > 0) throw new PoddError('GARBAGE_NOT_COLLECTED', `not removed within 30 s: ${names}`)
    },
  }
}

/** `pkg/kubelet/kubelet.go`, ImageGCPeriod, 1.36. */
const imagePeriodMs = 300_000
/** Removing gigabytes from an SD card takes minutes. */
const imageDeadlineMs = 1_200_000
/** The most names in one event. */
const toldNames = 10

/**
 * Keeps the disk that holds the images from filling up with them, with the kubelet's events
 * (`pkg/kubelet/kubelet.go`, StartGarbageCollection, and `pkg/kubelet/images/image_gc_manager.go`, GarbageCollect, 1.36):
 * `ImageGCFailed` from the second failure in a row on.
 * @param isReady whether the images that pods need are known; before that images are only observed
 */
export function imageCollectionJob(
  garbage: ImageGarbage,
  isReady: () => boolean,
  isRuntimeUp: () => boolean,
  events: NodeEventRecorder,
): NodeJob {
  let hasFailed = false
  return {
    name: 'collect-images',
    periodMs: imagePeriodMs,
    deadlineMs: imageDeadlineMs,
    async run(signal) {
      if (!isRuntimeUp()) return
      try {
        if (isReady()) await collect(garbage, events, signal)
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

async function collect(garbage: ImageGarbage, events: NodeEventRecorder, signal: AbortSignal): Promise<void> {
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
  const names = someOf(removed.map(({ image }) => nameOf(image)))
  const message = `Removed unused images to free ${formatBytes(freedBytes)}: ${names}`
  return { type: 'Normal', reason: 'ImagesRemoved', message } as const
}

/** podd's own event of what was removed, if anything was: the kubelet only logs it. */
export function recordRemoved(
  events: NodeEventRecorder,
  reason: string,
  items: readonly GarbageItem[],
): void {
  const removed = items.filter(({ outcome }) => outcome === 'removed')
  if (removed.length === 0) return
  const names = someOf(removed.map(({ kind, name, message }) => `${kind} ${name} (${message})`))
  events.recordNode({ type: 'Normal', reason, message: `Removed ${names}` })
}

function someOf(names: readonly string[]): string {
  const more = names.length > toldNames ? ` and ${names.length - toldNames} more` : ''
  return `${names.slice(0, toldNames).join(', ')}${more}`
}
