import type { Clock } from '../../../base/clock.ts'
import type { NodeEventRecorder } from '../../../pod/state/pod-event.ts'
import { garbageEvent } from './garbage-event.ts'
import type { NodeJob } from '../../jobs/node-jobs.ts'
import { throwFailures } from './orphans.ts'
import type { Orphans } from './orphans.ts'

const periodMs = 10_000
/** The interval while something may have been left behind. */
const lookMs = 30_000
/** The interval when nothing was found for a while and nothing has happened. */
const restMs = 600_000
/** Removing gigabytes of a lost pod's volumes from an SD card takes minutes. */
const deadlineMs = 1_200_000
/**
 * How many looks follow a disturbance: remains of a late cancellation by a busy containerd are found only by the second
 * look, and removed by the third.
 */
const looks = 3
/** How often a failed removal is retried at the short interval. */
const mostLooks = 20

export interface OrphanCollectionJobOptions {
  readonly orphans: Pick<Orphans, 'collect'>
  /** Whether the pods are known and the runtime answers. */
  readonly isReady: () => boolean
  /** How often a sandbox was removed so far or could not be made, or containerd was started: each may leave something behind. */
  readonly disturbances: () => number
  readonly events: NodeEventRecorder
  readonly clock: Clock
}

/** Removes the remains of pods that no longer exist, also those left by a killed podd or containerd. */
export function orphanCollectionJob(options: OrphanCollectionJobOptions): NodeJob {
  const { clock, disturbances, events, isReady, orphans } = options
  let left = looks
  let looked = 0
  let disturbed = -1
  let dueMs = 0
  return {
    name: 'collect-orphans',
    periodMs,
    deadlineMs,
    async run(signal) {
      if (!isReady()) return
      if (disturbances() !== disturbed) {
        disturbed = disturbances()
        left = looks
        looked = 0
        dueMs = Math.min(dueMs, clock.monotonicMs() + lookMs)
      }
      if (clock.monotonicMs() < dueMs) return
      looked += 1
      const collection = await orphans.collect(signal)
      const event = garbageEvent('OrphansRemoved', collection.items)
      if (event !== undefined) events.recordNode(event)
      const { nextMs } = collection
      // The network of a removed sandbox is found only after it.
      left = event === undefined && nextMs === undefined ? left - 1 : looks - 1
      const nowMs = clock.monotonicMs()
      const isQuiet = left <= 0 || looked >= mostLooks
      dueMs = isQuiet ? nowMs + restMs : Math.min(nextMs ?? Infinity, nowMs + lookMs)
      throwFailures(collection)
    },
  }
}
