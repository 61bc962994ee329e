import type { Clock } from '../../base/clock.ts'
import type { OrphanCollector } from '../../decide/node/plan-orphans.ts'
import type { ContainerdInventory } from './containerd-inventory.ts'
import { firewallOrphans } from './firewall-orphans.ts'
import { addressOrphans, cniResultOrphans, interfaceOrphans, namespaceOrphans } from './network-orphans.ts'
import { containerOrphans, shimOrphans, taskOrphans } from './runtime-orphans.ts'
import { leaseOrphans, snapshotOrphans } from './storage-orphans.ts'

/** One collector for each kind of object, in the order in which they are removed. */
export function orphanCollectors(inventory: ContainerdInventory, clock: Clock): readonly OrphanCollector[] {
  return [
    shimOrphans(inventory, clock),
    taskOrphans(inventory),
    containerOrphans(inventory),
    snapshotOrphans(inventory),
    leaseOrphans(inventory),
    namespaceOrphans(inventory),
    interfaceOrphans(inventory),
    addressOrphans(inventory),
    cniResultOrphans(inventory),
    firewallOrphans(inventory),
  ]
}
