import { existsSync } from 'node:fs'
import { childCgroups, cgroupTree, readCgroup } from './files.ts'
import type { CgroupSystem } from './layout.ts'

/**
 * Whether processes of these containers live in a pod's cgroup. Undefined where the pod has none.
 *
 * @param path of the pod's cgroup, below the mount points
 * @param ids of containers; the names of their cgroups have these in them
 */
export function hasProcesses(
  { hierarchies }: CgroupSystem,
  path: string,
  ids: readonly string[],
): boolean | undefined {
  const directories = hierarchies.map((hierarchy) => `${hierarchy.path}${path}`)
  const there = directories.filter((directory) => existsSync(directory))
  if (there.length === 0) return undefined
  return there.some((directory) =>
    childCgroups(directory)
      .filter((name) => ids.some((id) => name.includes(id)))
      .flatMap((name) => cgroupTree(`${directory}/${name}`))
      .some((inner) => readCgroup(inner, 'cgroup.procs').length > 0),
  )
}

/** Whether any process lives in a cgroup or below it, in any hierarchy. */
export function isInhabited({ hierarchies }: CgroupSystem, path: string): boolean {
  return hierarchies
    .map((hierarchy) => `${hierarchy.path}${path}`)
    .filter((directory) => existsSync(directory))
    .flatMap((directory) => cgroupTree(directory))
    .some((directory) => readCgroup(directory, 'cgroup.procs').length > 0)
}
