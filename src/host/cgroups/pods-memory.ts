import type { QosClass } from '../../pod/schema/pod-resources.ts'
import { readCgroup } from './files.ts'
import { cgroupPath, cgroupRootParts, podCgroupName } from './layout.ts'
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
  const hierarchyPath = memoryHierarchy(system)
  if (hierarchyPath === undefined) return undefined
  const parts = [...cgroupRootParts(root), 'kubepods']
  const levels = parts.map((_, at) => `${hierarchyPath}${cgroupPath(parts.slice(0, at + 1), driver)}`)
  return levels
    .flatMap((path) => readLevel(path, system.version) ?? [])
    .toSorted((one, other) => one.available - other.available)[0]
}

/** The bytes that a pod uses and the kernel can't reclaim; undefined where it has no cgroup. */
export function readPodMemory(
  { system, root, driver }: PodsCgroup,
  qosClass: QosClass,
  uid: string,
): number | undefined {
  const hierarchyPath = memoryHierarchy(system)
  if (hierarchyPath === undefined) return undefined
  const path = `${hierarchyPath}${cgroupPath(podCgroupName(root, qosClass, uid), driver)}`
  return readUsage(path, system.version)
}

function memoryHierarchy({ version, hierarchies }: CgroupSystem): string | undefined {
  const found =
    version === 2 ? hierarchies[0] : hierarchies.find((each) => each.controllers.includes('memory'))
  return found?.path
}

/** Version 1 represents no limit by a number beyond any memory. */
const unlimitedBytes = 2 ** 60

function readLevel(path: string, version: 1 | 2) {
  const capacity = Number(readCgroup(path, version === 2 ? 'memory.max' : 'memory.limit_in_bytes')[0])
  const usage = readUsage(path, version)
  if (!Number.isFinite(capacity) || usage === undefined || capacity > unlimitedBytes) return undefined
  return { available: Math.max(0, capacity - usage), capacity }
}

/** Without reclaimable memory. */
function readUsage(path: string, version: 1 | 2): number | undefined {
  const [usageFile, inactive] =
    version === 2
      ? (['memory.current', 'inactive_file'] as const)
      : (['memory.usage_in_bytes', 'total_inactive_file'] as const)
  const usage = Number(readCgroup(path, usageFile)[0])
  if (!Number.isFinite(usage)) return undefined
  const stat = readCgroup(path, 'memory.stat')
  const at = stat.indexOf(inactive)
  return Math.max(0, usage - (at === -1 ? 0 : Number(stat[at + 1])))
}
