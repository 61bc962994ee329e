import type { GarbageItem } from '../../../api/images.ts'
import { PoddError } from '../../../base/errors.ts'
import type { NodeEventRecorder } from '../../../pod/state/pod-event.ts'
import type { ContainerGarbage } from './container-garbage.ts'
import { garbageEvent } from './garbage-event.ts'
import type { NodeJob } from '../../jobs/node-jobs.ts'

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
