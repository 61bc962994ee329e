import type { StorageUse } from '../../../decide/node/judge-pressure.ts'
import type { PodWorker } from '../../worker/pod-worker.ts'
import { measurePods } from './measure-pods.ts'
import type { PressureSurroundings } from './pressure-surroundings.ts'

/**
 * Measures a pod's usage of the node's disk. Writable layers on a disk of their own don't count
 * (`pkg/kubelet/eviction/eviction_manager.go`, containerEphemeralStorageLimitEviction, 1.36).
 */
export function storageMeter(
  surroundings: PressureSurroundings,
): (worker: PodWorker, signal: AbortSignal) => Promise<StorageUse> {
  return async ({ ref, state }, signal) => {
    const disk = await surroundings.diskOf('nodefs.available')
    const pods = [{ ref, pod: state.pod }]
    const [found] = await measurePods(surroundings, pods, { resource: 'ephemeral-storage', disk }, signal)
    return {
      podBytes: found?.used['ephemeral-storage'] ?? 0,
      // Where layers are elsewhere, only the pod's total is judged.
      containers: new Map(
        disk === 'node' ? [] : found?.containers.map(({ name, diskBytes = 0 }) => [name, diskBytes]),
      ),
    }
  }
}
