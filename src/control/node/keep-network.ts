import type { Clock } from '../../base/clock.ts'
import type { NodeJob } from '../jobs/node-jobs.ts'

const deadlineMs = 120_000
/** How soon after a sandbox was asked for its rules are there, usually. */
const settleMs = 2000
/** While sandbox after sandbox is asked for, a check waits for an end of that so long, at most. */
const longestSettleMs = 10_000
/** How soon a change from outside is noticed, at the latest. */
const glanceMs = 10_000
/** A firewall with very many rules takes time to read. So much longer than a glance took is the rest after it, at least. */
const restPerGlance = 20

export interface PodNetworkJobOptions {
  readonly network: {
    /** Resolves with false where there was nothing to check yet: containerd does not run. */
    check(): Promise<boolean>
    glance(): Promise<void>
  }
  /** How many sandboxes were asked for so far. */
  readonly sandboxes: () => number
  /** Whether some may still be in the making: a check does not see their rules. */
  readonly isMaking: () => boolean
  /** From one whole check to the next. */
  readonly periodMs: number
  readonly clock: Clock
}

/**
 * Restores the pods' network where it was changed from outside: a glance now and then, and a whole check each period and some
 * time after a sandbox was asked for. To be woken then: a reload of the firewall in the next moments would remove rules that
 * no check has seen.
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

  /** A check runs programs and lists sandboxes: many pods that start together need one, and not while they start. */
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
