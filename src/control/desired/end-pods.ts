import type { Clock } from '../../base/clock.ts'
import type { Changes } from '../../base/waits.ts'
import { podKey } from '../../pod/values/ids.ts'
import type { PodKey } from '../../pod/values/ids.ts'
import type { PodState } from '../pod/state.ts'
import type { PodWorker } from '../pod/worker.ts'

/**
 * How long pods that cannot be terminated now, because the runtime is unavailable or fails, may exceed their grace
 * period, and after that how long the next may take.
 */
const troubledMs = 20_000
/** The same for pods without a known problem: the host may be slow, the runtime may hang. */
const patienceMs = 60_000

/** What tells how pods end. */
interface EndWatch {
  /** Of the pods, and of the runtime's problem. */
  readonly changes: Changes
  readonly clock: Clock
  /** Why the runtime can't be used for now. */
  readonly runtimeProblem: () => string | undefined
}

export interface EndingWorker {
  readonly state: Pick<PodState, 'record' | 'stage' | 'lastError' | 'isReleased'>
}

/** Whether the pod has nothing of the host any more: it is removed, or has ended and is kept for its status. */
function isDone({ state: { record, stage, isReleased } }: EndingWorker): boolean {
  if (stage === 'gone') return true
  return record.ending === undefined && (isReleased || record.startedAtMs === undefined)
}

/**
 * Whether the pod has ended for good: one that was written over the API never runs again, as in a cluster, and its record
 * is what says so. Pods of files and URLs start afresh after `podd down`, and so does one that a drain has ended.
 */
function staysEnded({ state }: PodWorker): boolean {
  const { source, ending, failed } = state.record
  return source === 'api' && state.hasEnded && ending === undefined && failed?.until !== 'shutdown-ends'
}

/** Waits until all terminating pods are removed and the others released, or until there was no progress for a while. */
export async function waitForEnds(
  workers: readonly EndingWorker[],
  { changes, clock, runtimeProblem }: EndWatch,
  signal: AbortSignal,
): Promise<void> {
  const graces = workers.map(({ state }) => state.record.ending?.graceSeconds ?? 0)
  let sinceMs = clock.monotonicMs() + Math.max(0, ...graces) * 1000
  /** Since when each that is left has a problem; undefined while one has none. */
  let troubledAtMs: number | undefined
  let before = 0
  for (;;) {
    const nowMs = clock.monotonicMs()
    const left = workers.filter((worker) => !isDone(worker))
    if (left.length === 0) return
    const stopped = left.filter(({ state }) => state.stage === 'stopped').length
    const done = stopped + 2 * (workers.length - left.length)
    if (done > before) sinceMs = Math.max(sinceMs, nowMs)
    before = done
    const isTroubled =
      runtimeProblem() !== undefined || left.every(({ state }) => state.lastError !== undefined)
    troubledAtMs = isTroubled ? (troubledAtMs ?? nowMs) : undefined
    const troubledUntilMs =
      troubledAtMs === undefined ? Infinity : Math.max(sinceMs, troubledAtMs) + troubledMs
    const untilMs = Math.min(troubledUntilMs, sinceMs + patienceMs)
    if (nowMs >= untilMs) return
    await changes.next(clock, untilMs - nowMs, signal)
  }
}

/**
 * Ends pods, each with its own grace or with this one, and tells which of them would not end in time. Those that have
 * ended for good keep their record, their logs and their dead containers, unless these are to be removed too.
 * @param graceSeconds instead of each pod's own
 */
export async function endPods(
  workers: readonly PodWorker[],
  graceSeconds: number | undefined,
  removesEnded: boolean,
  watch: EndWatch,
  signal: AbortSignal,
): Promise<{ readonly ended: number; readonly stuck: readonly PodKey[] }> {
  const kept = new Set(workers.filter((worker) => !removesEnded && staysEnded(worker)))
  // Its sandbox may still have to be stopped, its volumes to be removed.
  for (const worker of kept) worker.confirm()
  for (const worker of workers) {
    if (kept.has(worker)) continue
    worker.end({
      cause: 'removed',
      reason: 'Killing',
      message: 'podd is being shut down by podd down',
      graceSeconds: graceSeconds ?? worker.state.pod.spec.terminationGracePeriodSeconds,
    })
  }
  await waitForEnds(workers, watch, signal)
  const stuck = workers.filter((worker) => !isDone(worker))
  const ended = workers.filter((worker) => isDone(worker) && !kept.has(worker))
  return { ended: ended.length, stuck: stuck.map(({ ref }) => podKey(ref)) }
}
