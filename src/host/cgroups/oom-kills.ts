import { childCgroups, readCgroup } from './files.ts'
import type { CgroupSystem } from './layout.ts'

/**
 * How many processes the kernel has killed for their memory in this cgroup and below (`oom_kill` of `memory.events`),
 * but for those of containers that live. What it counted of a cgroup that is gone counts on in those above; one that
 * isn't there has counted nothing. Undefined in cgroup version 1, which doesn't.
 *
 * @param path of the cgroup, below the mount point
 * @param liveIds containers and sandboxes that live; the names of their cgroups have these in them
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
