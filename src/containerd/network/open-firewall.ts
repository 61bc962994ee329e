import type { Logger } from '../../base/logger.ts'
import type { ContainerdPlaces } from '../process/containerd-places.ts'
import { selectFirewalls } from './firewall.ts'
import { ensureForwardRules } from './forward-rules.ts'
import { ensureMasquerade } from './masquerade-rules.ts'

/** Adds the rules for the traffic of pods. Pods may work without them, so a failure is only logged. */
export async function openFirewall(
  places: ContainerdPlaces,
  podCidrs: readonly string[],
  logger: Logger,
): Promise<void> {
  for (const firewall of selectFirewalls(podCidrs)) {
    // One after the other: both wait for the same lock.
    for (const ensure of [ensureMasquerade, ensureForwardRules]) {
      try {
        await ensure(places, firewall, podCidrs)
      } catch (error) {
        logger.warn({ err: error }, 'cannot add firewall rules for the traffic of pods')
      }
    }
  }
}
