import { PoddError, errorMessage } from '../../../base/errors.ts'
import { formatBytes } from '../../../base/text.ts'
import { usedPercent } from '../../../decide/node/plan-image-garbage.ts'
import type { ImageGarbagePolicy } from '../../../decide/node/plan-image-garbage.ts'
import type { NodeEventRecorder } from '../../../pod/state/pod-event.ts'
import { describeFailures, nameOf } from '../../images/image-garbage.ts'
import type { ImageCollection, ImageGarbage } from '../../images/image-garbage.ts'
import type { NodeJob } from '../../jobs/node-jobs.ts'

/** `pkg/kubelet/kubelet.go`, ImageGCPeriod, 1.36. */
const periodMs = 300_000
/** Removing gigabytes from an SD card takes minutes. */
const deadlineMs = 1_200_000
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
    periodMs: options.periodMs ?? periodMs,
    deadlineMs,
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
