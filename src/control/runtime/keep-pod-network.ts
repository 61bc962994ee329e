import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import type { EmbeddedContainerd } from '../../runtime/embedded-containerd.ts'
import { findUnreserved, reserveAgain, RememberedCniResults } from '../../runtime/network/cni-results.ts'
import type { CniResult } from '../../runtime/network/cni-results.ts'
import { NetworkRules } from '../../runtime/network/network-rules.ts'
import { describeRepairs, PodBridge } from '../../runtime/network/pod-bridge.ts'
import type { NodeEventRecorder } from '../../pod/state/pod-event.ts'

export interface KeepPodNetworkDeps {
  readonly embedded: Pick<EmbeddedContainerd, 'places' | 'state'>
  /** The ids of the sandboxes that are ready. */
  readonly listReady: () => Promise<ReadonlySet<string>>
  readonly events: NodeEventRecorder
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * Reading the rules takes a program, which costs more than a hundred looks at the bridge: once in so many quick checks.
 */
const glancesPerRules = 3

/** Both do nothing while containerd does not run, and throw HostCommandError and what the runtime's calls throw. */
export interface PodNetworkKeeper {
  /**
   * Restores what is missing of the pods' network, for the current sandboxes. Resolves with whether containerd runs.
   */
  check(): Promise<boolean>
  /** Cheaper: checks only where something is missing of what the last check saw. */
  glance(): Promise<void>
  /**
   * To be called before each sandbox is made: no address is given that a running one has. Cheap where nothing is missing;
   * never rejects.
   */
  reserveAddresses(): Promise<void>
}

/**
 * Creates the keeper that restores the pods' network after changes from outside: its firewall rules, which a reload of
 * the firewall wipes; its bridge; the forwarding of packets. No pod is touched.
 */
export function createPodNetworkKeeper(deps: KeepPodNetworkDeps): PodNetworkKeeper {
  const { embedded, listReady, events, clock, logger } = deps
  const { bridgeName, networkName } = embedded.places
  const results = new RememberedCniResults(networkName, clock)
  const rules = new NetworkRules(embedded.places)
  const bridge = new PodBridge(embedded.places)
  let glances = 0

  function tell(reason: string, message: string, rules: readonly string[] = []): void {
    events.recordNode({ type: 'Warning', reason, message })
    logger.warn({ reason: [message, ...rules].join('; ') }, 'restored the pod network')
  }

  async function restoreReservations(
    ready: ReadonlySet<string>,
    remembered: readonly CniResult[],
  ): Promise<void> {
    const ofReady = remembered.filter(({ sandboxId }) => ready.has(sandboxId))
    const reserved = await reserveAgain(embedded.places, findUnreserved(embedded.places, ofReady))
    if (reserved.length > 0)
      tell(
        'PodNetworkRestored',
        `The reservations of pods' addresses were removed from ${embedded.places.cniDataDir}, and podd has restored them: ${reserved.join(', ')}`,
      )
  }

  async function check(): Promise<boolean> {
    const { state } = embedded
    if (state.kind !== 'running') return false
    // It reads the rules too.
    glances = 0
    const ready = await listReady()
    const remembered = ready.size === 0 ? [] : await results.read()
    await restoreReservations(ready, remembered)
    const repairs = await bridge.check(ready, remembered)
    if (repairs.length > 0)
      tell(
        'PodNetworkRestored',
        `The pod network was changed from outside podd, and podd has restored it. It found: ${describeRepairs(bridgeName, repairs)}`,
      )
    const restored = await rules.check(state.running.podCidrs, listReady, remembered)
    if (restored.length > 0)
      tell(
        'FirewallRulesRestored',
        'Firewall rules of the pod network were removed from outside podd, and podd has restored them',
        restored,
      )
    return true
  }

  return {
    check,
    async reserveAddresses() {
      try {
        const remembered = await results.read()
        if (findUnreserved(embedded.places, remembered).length === 0) return
        await restoreReservations(await listReady(), remembered)
      } catch (error) {
        // The job looks again, and reports it.
        logger.debug({ err: error }, 'cannot restore the reservations of addresses')
      }
    },
    async glance() {
      const { state } = embedded
      if (state.kind !== 'running') return
      glances += 1
      const looksAtRules = glances % glancesPerRules === 0
      const isLacking = !bridge.isWhole || (looksAtRules && (await rules.isLacking(state.running.podCidrs)))
      if (isLacking) await check()
    },
  }
}
