import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import type { EmbeddedContainerd } from '../../containerd/embedded-containerd.ts'
import { LeakedRules } from '../../containerd/leaks/leaked-rules.ts'
import { NetworkRules } from '../../containerd/network/network-rules.ts'
import type * as cri from '../../cri-types/cri-v1.ts'

export interface KeepNetworkRulesDeps {
  readonly embedded: Pick<EmbeddedContainerd, 'places' | 'state'>
  /** The ids of sandboxes. */
  readonly listSandboxes: (filter: cri.PodSandboxFilterInput) => Promise<ReadonlySet<string>>
  /** Whether a sandbox is in the making that was asked for by then (monotonic time). */
  readonly isAnyInTheMaking: (sinceMs: number) => boolean
  /** A signal that is aborted when the next sandbox is made: it brings rules with it. */
  readonly untilSandboxMade: () => AbortSignal
  readonly periodMs: number
  readonly clock: Clock
  readonly logger: Logger
}

/** How soon after a sandbox was asked for its rules are there, usually. */
const settleMs = 2000

/**
 * Puts back the rules of the pods' network that a reload of the firewall has wiped, and removes those of sandboxes that
 * are gone, until the signal is aborted. Never rejects.
 */
export async function keepNetworkRules(deps: KeepNetworkRulesDeps, signal: AbortSignal): Promise<void> {
  const { embedded, clock, logger, listSandboxes, isAnyInTheMaking } = deps
  const rules = new NetworkRules(embedded.places)
  const leaked = new LeakedRules(embedded.places, clock)
  const listReady = () => listSandboxes({ state: { state: 'SANDBOX_READY' } })
  const known = { list: () => listSandboxes({}), isAnyInTheMaking }
  while (!signal.aborted) {
    // Before the check: a sandbox that is made during it has its rules only after it.
    const sandboxMade = deps.untilSandboxMade()
    const { state } = embedded
    try {
      if (state.kind === 'running') {
        const { podCidrs } = state.running
        if (await rules.check(podCidrs, listReady))
          logger.warn({}, 'restored firewall rules of the pod network that were removed from outside podd')
        for (const id of await leaked.check(podCidrs, known))
          logger.warn({ id }, 'removed the firewall rules of a removed sandbox')
      }
    } catch (error) {
      if (!signal.aborted) logger.debug({ err: error }, 'cannot read the firewall rules of the pod network')
    }
    await clock.sleep(deps.periodMs, AbortSignal.any([signal, sandboxMade])).catch(() => undefined)
    if (sandboxMade.aborted) await clock.sleep(settleMs, signal).catch(() => undefined)
  }
}
