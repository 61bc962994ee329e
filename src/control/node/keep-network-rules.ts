import type { Clock } from '../../base/clock.ts'
import type { NodeJob } from '../jobs/node-jobs.ts'

const deadlineMs = 120_000
/** How soon after a sandbox was asked for its rules are there, usually. */
const settleMs = 2000

export interface NetworkRulesJobOptions {
  readonly keep: () => Promise<void>
  readonly periodMs: number
  readonly clock: Clock
}

/**
 * Restores the firewall rules of the pods' network that a reload of the firewall has wiped. To be woken when a sandbox is
 * asked for: a reload in the next moments would find rules that no check has seen.
 */
export function networkRulesJob({ keep, periodMs, clock }: NetworkRulesJobOptions): NodeJob {
  return {
    name: 'keep-network-rules',
    periodMs,
    deadlineMs,
    runsAtStart: true,
    async run(signal) {
      await clock.sleep(settleMs, signal)
      await keep()
    },
  }
}
