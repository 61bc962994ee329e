import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import { isStorageLimited, judgeStorage } from '../../decide/node/judge-pressure.ts'
import type { StorageUse } from '../../decide/node/judge-pressure.ts'
import type { PodUid } from '../../pod/values/ids.ts'
import { quantityValue } from '../../pod/values/quantity.ts'
import type { PodWorker } from '../worker/pod-worker.ts'
import type { NodeJob } from '../jobs/node-jobs.ts'

/** The kubelet's interval (`pkg/kubelet/kubelet.go`, evictionMonitoringPeriod, 1.36). */
const periodMs = 10_000
/** The deadline of measuring all volumes; a large one takes minutes on a slow disk. */
const deadlineMs = 1_800_000
/** Large volumes are measured less often: measuring takes a twentieth of the time at most. */
const restFactor = 20
/** And of all pods together a fifth. */
const roundRestFactor = 4

export interface VolumeLimitsDeps {
  readonly workers: () => Iterable<PodWorker>
  /** The bytes that an emptyDir on disk takes. */
  readonly measure: (uid: PodUid, volume: string) => Promise<number>
  /** Measures a pod's disk usage; left out, limits of `ephemeral-storage` have no effect. */
  readonly measureStorage?: ((worker: PodWorker, signal: AbortSignal) => Promise<StorageUse>) | undefined
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * Evicts pods that use more of an emptyDir on disk than its sizeLimit, or of the disk than their limits of
 * `ephemeral-storage` (`pkg/kubelet/eviction/eviction_manager.go` localStorageEviction, 1.36). The kubelet doesn't for
 * static pods.
 */
export function volumeLimitsJob(deps: VolumeLimitsDeps): NodeJob {
  const { clock } = deps
  let restUntilMs = new Map<PodUid, number>()
  return {
    name: 'limit-volumes',
    periodMs,
    deadlineMs,
    async run(signal) {
      const next = new Map<PodUid, number>()
      let measuredMs = 0
      for (const worker of deps.workers()) {
        signal.throwIfAborted()
        const { name: pod, uid } = worker.ref
        const startMs = clock.monotonicMs()
        const resting = restUntilMs.get(uid) ?? 0
        if (startMs < resting) {
          next.set(uid, resting)
          continue
        }
        try {
          await check(worker, deps, signal)
        } catch (error) {
          deps.logger.warn({ pod, uid, err: error }, 'cannot measure what a pod takes of the disk')
        }
        const nowMs = clock.monotonicMs()
        measuredMs += nowMs - startMs
        next.set(uid, nowMs + (nowMs - startMs) * restFactor)
      }
      restUntilMs = next
      // However many they are.
      return measuredMs * roundRestFactor
    },
  }
}

async function check(
  worker: PodWorker,
  { measure, measureStorage }: VolumeLimitsDeps,
  signal: AbortSignal,
): Promise<void> {
  if (worker.state.stage !== 'active' || worker.state.isOver) return
  for (const { name, emptyDir } of worker.state.pod.spec.volumes) {
    if (emptyDir?.sizeLimit === undefined || emptyDir.medium !== '') continue
    const limitBytes = quantityValue(emptyDir.sizeLimit)
    if (limitBytes <= 0 || (await measure(worker.ref.uid, name)) <= limitBytes) continue
    worker.evict({
      reason: 'Evicted',
      message: `Usage of EmptyDir volume "${name}" exceeds the limit "${emptyDir.sizeLimit}". `,
      graceSeconds: 1,
    })
    return
  }
  const { spec } = worker.state.pod
  if (measureStorage === undefined || !isStorageLimited(spec)) return
  const message = judgeStorage(spec, await measureStorage(worker, signal))
  if (message !== undefined) worker.evict({ reason: 'Evicted', message, graceSeconds: 1 })
}
