import type { Clock } from '../../base/clock.ts'
import type { NodeJob } from '../jobs/node-jobs.ts'

const deadlineMs = 120_000
/** The usual time from the request of a sandbox until its rules exist. */
const settleMs = 2000
/** How long a check waits at most while sandboxes keep being requested. */
const longestSettleMs = 10_000
/** The longest delay before a change from outside is noticed. */
const glanceMs = 10_000
/**
 * The least pause after a quick check, as a multiple of its duration: a firewall with many rules takes long to read.
 */
const restPerGlance = 20

export interface PodNetworkJobOptions {
  readonly network: {
    /** Resolves with false where nothing could be checked, because containerd does not run. */
    check(): Promise<boolean>
    glance(): Promise<void>
  }
  /** How many sandboxes were requested so far. */
  readonly sandboxes: () => number
  /** Whether some may still be in creation: a check does not see their rules. */
  readonly isMaking: () => boolean
  /** The period of full checks. */
  readonly periodMs: number
  readonly clock: Clock
}

/**
 * Restores the pods' network where it was changed from outside: quick checks in between, and a full check each period
 * and some time after a sandbox was requested. Wake it then: a reload of the firewall shortly afterwards would remove
 * rules that no check has seen.
 */
export function podNetworkJob({
  network,
  sandboxes,
  isMaking,
  periodMs,
  clock,
}: PodNetworkJobOptions): NodeJob {
  let checkedAtMs = -Infinity
  let seen = 0
  let wasMaking = false

  /** A check runs programs and lists sandboxes: many pods that start together need only one, after their start. */
  async function settle(signal: AbortSignal): Promise<void> {
    const untilMs = clock.monotonicMs() + longestSettleMs
    do {
      seen = sandboxes()
      await clock.sleep(settleMs, signal)
    } while (sandboxes() !== seen && clock.monotonicMs() < untilMs)
  }

  return {
    name: 'keep-network',
    periodMs: Math.min(glanceMs, periodMs),
    deadlineMs,
    runsAtStart: true,
    async run(signal) {
      const isNew = sandboxes() !== seen || wasMaking
      wasMaking = false
      if (isNew || checkedAtMs === -Infinity) await settle(signal)
      const startMs = clock.monotonicMs()
      if (isNew || startMs - checkedAtMs >= periodMs) {
        checkedAtMs = startMs
        wasMaking = isMaking()
        if (!(await network.check())) checkedAtMs = -Infinity
        return
      }
      await network.glance()
      return (clock.monotonicMs() - startMs) * restPerGlance
    },
  }
}
