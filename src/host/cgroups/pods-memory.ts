import { readCgroup } from './files.ts'
import { cgroupPath, cgroupRootParts } from './layout.ts'
import type { CgroupDriver, CgroupSystem } from './layout.ts'

/** The root of the pods' cgroups. */
export interface PodsCgroup {
  readonly system: CgroupSystem
  readonly root: string
  readonly driver: CgroupDriver
}

/**
 * The memory that all pods together may have, in bytes: of `kubepods` and the levels above it, the one with the least
 * memory left. Reclaimable memory counts as available (`inactive_file`), as for the kubelet's
 * `allocatableMemory.available`. Undefined where none of them has a limit.
 */
export function readPodsMemory({
  system,
  root,
  driver,
}: PodsCgroup): { readonly available: number; readonly capacity: number } | undefined {
  const hierarchy =
    system.version === 2
      ? system.hierarchies[0]
      : system.hierarchies.find(({ controllers }) => controllers.includes('memory'))
  if (hierarchy === undefined) return undefined
  const parts = [...cgroupRootParts(root), 'kubepods']
  const levels = parts.map((_, at) => `${hierarchy.path}${cgroupPath(parts.slice(0, at + 1), driver)}`)
  return levels
    .flatMap((path) => readLevel(path, system.version) ?? [])
    .toSorted((one, other) => one.available - other.available)[0]
}

/** Version 1 represents no limit by a number beyond any memory. */
const unlimitedBytes = 2 ** 60

function readLevel(path: string, version: 1 | 2) {
  const [limitFile, usageFile, inactive] =
    version === 2
      ? (['memory.max', 'memory.current', 'inactive_file'] as const)
      : (['memory.limit_in_bytes', 'memory.usage_in_bytes', 'total_inactive_file'] as const)
  const capacity = Number(readCgroup(path, limitFile)[0])
  const usage = Number(readCgroup(path, usageFile)[0])
  if (!Number.isFinite(capacity) || !Number.isFinite(usage) || capacity > unlimitedBytes) return undefined
  const stat = readCgroup(path, 'memory.stat')
  const at = stat.indexOf(inactive)
  const droppable = at === -1 ? 0 : Number(stat[at + 1])
  return { available: Math.min(capacity, Math.max(0, capacity - usage + droppable)), capacity }
}
