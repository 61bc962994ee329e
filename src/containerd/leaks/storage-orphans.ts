import type { OrphanCollector } from '../../decide/node/plan-orphans.ts'
import type { ContainerdInventory } from './containerd-inventory.ts'

/** CRI names what it makes for a sandbox or container by its id. */
const criId = /^[0-9a-f]{64}$/u

/**
 * The snapshots of containers that containerd no longer knows: when it is killed between creating a container's
 * snapshot and recording the container, a lease holds the snapshot for a day (`client.NewContainer`, WithLease).
 */
export function snapshotOrphans(inventory: ContainerdInventory): OrphanCollector {
  const snapshots = (): readonly string[] => {
    const snapshotter = inventory.tools?.snapshotter
    return ['snapshots', ...(snapshotter === undefined ? [] : ['--snapshotter', snapshotter])]
  }
  return {
    kind: 'snapshot',
    async list(look) {
      if (inventory.tools === undefined) return []
      const names = await inventory.records.snapshots(inventory.tools.snapshotter)
      const unknown = await inventory.findUnknown(criIds(names), look)
      return [...unknown].map((id) => ({
        kind: 'snapshot',
        id,
        message: 'its container is unknown to containerd',
      }))
    },
    async remove({ id }) {
      if (!(await inventory.findUnknown([id])).has(id)) return false
      await inventory.ctr([...snapshots(), 'remove', id])
      return true
    },
  }
}

/** Leases of sandboxes that CRI no longer lists; containerd 2 makes one for each. Others expire within a day. */
export function leaseOrphans(inventory: ContainerdInventory): OrphanCollector {
  return {
    kind: 'lease',
    async list(look) {
      if (inventory.tools === undefined) return []
      const unknown = await inventory.findUnknown(criIds(await inventory.records.leases()), look)
      return [...unknown].map((id) => ({
        kind: 'lease',
        id,
        message: 'its sandbox is unknown to containerd',
      }))
    },
    async remove({ id }) {
      if (!(await inventory.findUnknown([id])).has(id)) return false
      await inventory.ctr(['leases', 'delete', id])
      return true
    },
  }
}

/** Only those that CRI has made. */
function criIds(names: readonly string[]): readonly string[] {
  return names.filter((name) => criId.test(name))
}
