import { childCgroups, readCgroup } from './files.ts'
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

function readOomKills(directory: string): number {
  const words = readCgroup(directory, 'memory.events')
  const at = words.indexOf('oom_kill')
  return at === -1 ? 0 : Number(words[at + 1])
}
