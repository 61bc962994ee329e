import type { Clock } from '../base/clock.ts'
import type { PodStage } from './pod-state.ts'
import type { PodWorker } from './pod-worker.ts'

/**
 * How long pods may take to end beyond their grace, and after that from one of them to the next: a runtime on a full
 * disk may never say that they did.
 */
const slackMs = 20_000

/** Until all that are being ended are gone, or nothing has come of it for a while: a slow host takes its time for many. */
export async function waitForEnds(
  workers: readonly Pick<PodWorker, 'state'>[],
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const graces = workers.map(({ state }) => state.record.ending?.graceSeconds ?? 0)
  let giveUpAtMs = clock.monotonicMs() + Math.max(0, ...graces) * 1000 + slackMs
  let before = 0
  while (clock.monotonicMs() < giveUpAtMs) {
    const count = (stage: PodStage): number => workers.filter(({ state }) => state.stage === stage).length
    if (count('gone') === workers.length) return
    const done = count('stopped') + 2 * count('gone')
    if (done > before) giveUpAtMs = Math.max(giveUpAtMs, clock.monotonicMs() + slackMs)
    before = done
    await clock.sleep(20, signal)
  }
}
