import type { Clock } from '../../base/clock.ts'
import { podKey } from '../../pod/values/ids.ts'
import type { PodKey } from '../../pod/values/ids.ts'
import type { PodState } from '../worker/pod-state.ts'
import type { PodWorker } from '../worker/pod-worker.ts'

/**
 * How long pods that cannot be terminated now, because the runtime is unavailable or fails, may exceed their grace
 * period, and after that how long the next may take.
 */
const troubledMs = 20_000
/** The same for pods without a known problem: the host may be slow, the runtime may hang. */
const patienceMs = 60_000

export interface EndOptions {
  /** Instead of each pod's own, in seconds. */
  readonly graceSeconds: number | undefined
  readonly clock: Clock
  /** Why the runtime can't be used for now. */
  readonly runtimeProblem: () => string | undefined
  readonly signal: AbortSignal
}

/** What is looked at of a pod. */
export interface EndingWorker {
  readonly state: Pick<PodState, 'record' | 'stage' | 'lastError'>
}

/** Waits until all terminating pods are removed, or until there was no progress for a while. */
export async function waitForEnds(
  workers: readonly EndingWorker[],
  { clock, runtimeProblem, signal }: Omit<EndOptions, 'graceSeconds'>,
): Promise<void> {
  const graces = workers.map(({ state }) => state.record.ending?.graceSeconds ?? 0)
  let sinceMs = clock.monotonicMs() + Math.max(0, ...graces) * 1000
  let untroubledMs = clock.monotonicMs()
  let before = 0
  for (;;) {
    const nowMs = clock.monotonicMs()
    const left = workers.filter(({ state }) => state.stage !== 'gone')
    if (left.length === 0) return
    const stopped = left.filter(({ state }) => state.stage === 'stopped').length
    const done = stopped + 2 * (workers.length - left.length)
    if (done > before) sinceMs = Math.max(sinceMs, nowMs)
    before = done
    const isTroubled =
      runtimeProblem() !== undefined || left.every(({ state }) => state.lastError !== undefined)
    if (!isTroubled) untroubledMs = nowMs
    if (nowMs >= Math.max(sinceMs, untroubledMs) + troubledMs || nowMs >= sinceMs + patienceMs) return
    await clock.sleep(20, signal)
  }
}

/** Ends pods, each with its own grace or with this one, and tells which of them would not end in time. */
export async function endPods(
  workers: readonly PodWorker[],
  options: EndOptions,
): Promise<{ readonly ended: number; readonly stuck: readonly PodKey[] }> {
  for (const worker of workers) {
    worker.end({
      cause: 'removed',
      reason: 'Killing',
      message: 'podd is being shut down by podd down',
      graceSeconds: options.graceSeconds ?? worker.state.pod.spec.terminationGracePeriodSeconds,
    })
  }
  await waitForEnds(workers, options)
  const stuck = workers.filter((worker) => worker.state.stage !== 'gone').map(({ ref }) => podKey(ref))
  return { ended: workers.length - stuck.length, stuck }
}
