import type { Logger } from '../../base/logger.ts'
import type { EmbeddedContainerd } from '../../containerd/embedded-containerd.ts'
import { NetworkRules } from '../../containerd/network/network-rules.ts'

export interface KeepNetworkRulesDeps {
  readonly embedded: Pick<EmbeddedContainerd, 'places' | 'state'>
  /** The ids of the sandboxes that are ready. */
  readonly listReady: () => Promise<ReadonlySet<string>>
  readonly logger: Logger
}

/**
 * Makes what puts back the rules of the pods' network that a reload of the firewall has wiped. It does nothing while
 * containerd does not run; it throws HostCommandError, and what the runtime's calls throw.
 */
export function createNetworkRulesKeeper(deps: KeepNetworkRulesDeps): () => Promise<void> {
  const { embedded, listReady, logger } = deps
  const rules = new NetworkRules(embedded.places)
  return async () => {
    const { state } = embedded
    if (state.kind !== 'running') return
    if (await rules.check(state.running.podCidrs, listReady))
      logger.warn({}, 'restored firewall rules of the pod network that were removed from outside podd')
  }
}
