import type { PodUid } from '../../pod/values/ids.ts'
import type { PodWorker } from '../worker/pod-worker.ts'
import type { NodeJob } from '../jobs/node-jobs.ts'

/** In how many parts the pods are synced in a period: with the default period, whenever other jobs run too. */
const maxParts = 6

/**
 * Syncs each pod once in a period without an event, as the kubelet does (`pkg/kubelet/pod_workers.go`, resyncInterval,
 * 1.36), spread over the period; and decides again on pods that wait to be admitted.
 */
export function syncPodsJob(options: {
  readonly workers: () => Iterable<Pick<PodWorker, 'ref' | 'sync'>>
  readonly reviewAdmission: () => void
  /** The runtime was listed, and takes calls. */
  readonly isReady: () => boolean
  readonly periodMs: number
}): NodeJob {
  const { workers, reviewAdmission, isReady, periodMs } = options
  const parts = Math.min(maxParts, Math.max(1, Math.floor(periodMs / 1000)))
  let part = 0
  return {
    name: 'sync-pods',
    periodMs: periodMs / parts,
    deadlineMs: 60_000,
    async run(signal) {
      if (!isReady()) return
      part = (part + 1) % parts
      if (part === 0) reviewAdmission()
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
