import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { errorCode } from '../../base/errors.ts'
import { childCgroups, cgroupTree, killProcesses, readCgroup } from './files.ts'
import type { CgroupSystem } from './layout.ts'

/**
 * Whether the pod's cgroup has processes of these containers. Undefined without a cgroup.
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

/**
 * Kills the processes of these containers in the pod's cgroup, whatever the runtime does; returns how many there were.
 * Throws CgroupError. See hasProcesses for the parameters.
 */
export function killContainerProcesses(
  { hierarchies }: CgroupSystem,
  path: string,
  ids: readonly string[],
): number {
  const killed = hierarchies.map((hierarchy) => {
    const directory = `${hierarchy.path}${path}`
    const own = childCgroups(directory).filter((name) => ids.some((id) => name.includes(id)))
    return own.reduce((sum, name) => sum + killProcesses(`${directory}/${name}`), 0)
  })
  // In version 1 a process stands in each hierarchy.
  return Math.max(0, ...killed)
}

/**
 * Whether a cgroup or its descendants have any process, in any hierarchy. Throws the system's error where that can't be
 * read.
 */
export function isInhabited({ hierarchies }: CgroupSystem, path: string): boolean {
  return hierarchies.some((hierarchy) => hasAny(`${hierarchy.path}${path}`))
}

function hasAny(directory: string): boolean {
  try {
    if (readFileSync(`${directory}/cgroup.procs`, 'utf8').trim() !== '') return true
    return readdirSync(directory, { withFileTypes: true }).some(
      (entry) => entry.isDirectory() && hasAny(`${directory}/${entry.name}`),
    )
  } catch (error) {
    // It doesn't exist, or was removed meanwhile.
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENODEV') return false
    // A threaded cgroup: podd creates none.
    if (errorCode(error) === 'EOPNOTSUPP') return true
    throw error
  }
}
