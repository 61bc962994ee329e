import { cgroupTree, childCgroups, readCgroup } from './files.ts'
import type { CgroupSystem } from './layout.ts'

/**
 * The number of OOM kills in this cgroup and below (`oom_kill` of `memory.events`), without those in cgroups of live
 * containers. Kills in removed cgroups stay counted in the ones above; a missing cgroup counts as 0. Undefined in
 * cgroup version 1, which doesn't count.
 *
 * @param path of the cgroup, below the mount point
 * @param liveIds live containers and sandboxes; the names of their cgroups contain these ids
 */
export function countOomKills(
  { version, hierarchies }: CgroupSystem,
  path: string,
  liveIds: readonly string[],
): number | undefined {
  const [unified] = hierarchies
  if (version === 1 || unified === undefined) return undefined
  const directory = `${unified.path}${path}`
  const live = childCgroups(directory).filter((name) => liveIds.some((id) => name.includes(id)))
  return live.reduce((rest, name) => rest - readOomKills(`${directory}/${name}`), readOomKills(directory))
}

/**
 * Whether the kernel has killed for memory in a container's cgroup, or below. It counts in both versions there; the cgroup
 * is there for some milliseconds after the container's end.
 * @param path of the pod's cgroup, below the mount points
 * @param containerId the name of the container's cgroup contains it
 */
export function hasOomKills(
  { version, hierarchies }: CgroupSystem,
  path: string,
  containerId: string,
): boolean {
  const memory = hierarchies.find(({ controllers }) => version === 2 || controllers.includes('memory'))
  if (memory === undefined) return false
  const directory = `${memory.path}${path}`
  const file = version === 2 ? 'memory.events' : 'memory.oom_control'
  return childCgroups(directory)
    .filter((name) => name.includes(containerId))
    .flatMap((name) => cgroupTree(`${directory}/${name}`))
    .some((inner) => readOomKills(inner, file) > 0)
}

function readOomKills(directory: string, file = 'memory.events'): number {
  const words = readCgroup(directory, file)
  const at = words.indexOf('oom_kill')
  return at === -1 ? 0 : Number(words[at + 1])
}
