import type { OrphanCollector } from '../../decide/node/plan-orphans.ts'
import type { ContainerdBooks } from './containerd-books.ts'

/** What CRI makes for a sandbox or container bears its id. */
const criId = /^[0-9a-f]{64}$/u

/**
 * The file systems of containers that containerd no longer knows: one that is killed between a container's file system
 * and its record leaves it, held by a lease for a day (`client.NewContainer`, WithLease).
 */
export function snapshotOrphans(books: ContainerdBooks): OrphanCollector {
  const snapshots = (): readonly string[] => {
    const snapshotter = books.tools?.snapshotter
    return ['snapshots', ...(snapshotter === undefined ? [] : ['--snapshotter', snapshotter])]
  }
  return {
    kind: 'snapshot',
    async list(look) {
      if (books.tools === undefined) return []
      const names = await books.records.snapshots(books.tools.snapshotter)
      const unknown = await books.findUnknown(criIds(names), look)
      return [...unknown].map((id) => ({
        kind: 'snapshot',
        id,
        message: 'its container is unknown to containerd',
      }))
    },
    async remove({ id }) {
      if (!(await books.findUnknown([id])).has(id)) return false
      await books.ctr([...snapshots(), 'remove', id])
      return true
    },
  }
}

/** Leases of sandboxes that CRI no longer lists; containerd 2 makes one for each. Others expire within a day. */
export function leaseOrphans(books: ContainerdBooks): OrphanCollector {
  return {
    kind: 'lease',
    async list(look) {
      if (books.tools === undefined) return []
      const unknown = await books.findUnknown(criIds(await books.records.leases()), look)
      return [...unknown].map((id) => ({
        kind: 'lease',
        id,
        message: 'its sandbox is unknown to containerd',
      }))
    },
    async remove({ id }) {
      if (!(await books.findUnknown([id])).has(id)) return false
      await books.ctr(['leases', 'delete', id])
      return true
    },
  }
}

/** As far as CRI has made them. */
function criIds(names: readonly string[]): readonly string[] {
  return names.filter((name) => criId.test(name))
}
