import type { Clock } from '../../base/clock.ts'
import type { OrphanCollector } from '../../decide/node/plan-orphans.ts'
import type { ContainerdBooks } from './containerd-books.ts'
import { firewallOrphans } from './firewall-orphans.ts'
import { addressOrphans, cniResultOrphans, interfaceOrphans, namespaceOrphans } from './network-orphans.ts'
import { containerOrphans, shimOrphans, taskOrphans } from './runtime-orphans.ts'
import { leaseOrphans, snapshotOrphans } from './storage-orphans.ts'

/** One collector for each kind of object, in the order in which they are removed. */
export function orphanCollectors(books: ContainerdBooks, clock: Clock): readonly OrphanCollector[] {
  return [
    shimOrphans(books, clock),
    taskOrphans(books),
    containerOrphans(books),
    snapshotOrphans(books),
    leaseOrphans(books),
    namespaceOrphans(books),
    interfaceOrphans(books),
    addressOrphans(books),
    cniResultOrphans(books),
    firewallOrphans(books),
  ]
}
