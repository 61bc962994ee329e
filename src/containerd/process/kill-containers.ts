import { readFileSync } from 'node:fs'
import { readdir, rmdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import { detectCgroups } from '../../host/cgroups/layout.ts'
import type { CgroupSystem } from '../../host/cgroups/layout.ts'
import { readMounts } from '../../host/mounts.ts'
import { isAlive, listProcesses, selectDescendants, signalProcess } from '../../host/processes.ts'
import type { ContainerdPlaces } from './containerd-places.ts'
import { findShims } from './containerd-process.ts'
import { EmbeddedContainerdError } from './embedded-containerd-error.ts'

/** Rounds of killing, 20 ms apart. */
const maxRounds = 250

/**
 * Kills all that runs below the shims of this instance, then the shims. containerd must have ended before. Returns the
 * cgroup directories of the killed processes.
 */
export async function killContainers(places: ContainerdPlaces, clock: Clock): Promise<ReadonlySet<string>> {
  const system = detectCgroups(readMounts())
  const cgroups = new Set<string>()
  // A container may fork while it is being killed: look again until none is left.
  for (let round = 0; round < maxRounds; round += 1) {
    const processes = listProcesses()
    const shims = findShims(places, processes)
    if (shims.length === 0) return cgroups
    const shimPids = shims.map((shim) => shim.pid)
    const contained = selectDescendants(processes, shimPids).filter((process) => !process.zombie)
    for (const process of contained) {
      const own = readOr(`/proc/${process.pid}/cgroup`)
      for (const cgroup of system === undefined ? [] : cgroupDirectories(own, system)) cgroups.add(cgroup)
      signalProcess(process, 'SIGKILL')
    }
    // The shims reap what was killed, so they go last.
    if (contained.length === 0) for (const shim of shims) signalProcess(shim, 'SIGKILL')
    await clock.sleep(20)
  }
  const left = findShims(places)
    .filter(isAlive)
    .map((shim) => shim.pid)
  throw new EmbeddedContainerdError(`the containers of the shims ${left.join(', ')} do not end`)
}

/** The directories that a /proc/PID/cgroup text names; none for root cgroups. */
export function cgroupDirectories(text: string, system: CgroupSystem): readonly string[] {
  return text.split('\n').flatMap((line) => {
    const [, controllers, path] = /^\d+:([^:]*):(.+)$/.exec(line) ?? []
    if (controllers === undefined || path === undefined || path === '/') return []
    const names = controllers.split(',').filter((name) => name !== '')
    return system.hierarchies
      .filter((hierarchy) =>
        names.length === 0
          ? hierarchy.controllers.length === 0
          : names.every((name) => hierarchy.controllers.includes(name)),
      )
      .map((hierarchy) => join(hierarchy.path, path))
  })
}

/** Removes these cgroups and those of their pods, where they are empty. */
export async function removeContainerCgroups(cgroups: ReadonlySet<string>): Promise<void> {
  for (const cgroup of cgroups) await removeCgroupTree(cgroup)
  const parents = new Set([...cgroups].map((cgroup) => dirname(cgroup)))
  for (const parent of parents)
    if (/^pod|-pod|^k8s\.io$/.test(basename(parent))) await removeCgroupTree(parent)
}

/** Removes a cgroup by rmdir, children first; one that is in use or gone is skipped. */
async function removeCgroupTree(path: string): Promise<void> {
  // It is gone; rmdir below makes sure.
  const entries = await readdir(path, { withFileTypes: true }).catch(() => [])
  for (const entry of entries) if (entry.isDirectory()) await removeCgroupTree(join(path, entry.name))
  // An empty cgroup costs nothing, and one in use belongs to a process that was not killed here.
  await rmdir(path).catch(() => undefined)
}

function readOr(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // The process or cgroup went meanwhile.
    return ''
  }
}
