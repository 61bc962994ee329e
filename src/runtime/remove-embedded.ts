import { readdir, rm, rmdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { removeTree } from '../base/atomic-file.ts'
import type { Clock } from '../base/clock.ts'
import { readTextIfThere } from '../base/read-bounded.ts'
import { detectCgroups } from '../host/cgroups/layout.ts'
import type { CgroupSystem } from '../host/cgroups/layout.ts'
import { findExecutable, commandOutput } from '../host/run-command.ts'
import { mountsBelow, readMounts, unmount } from '../host/mounts.ts'
import { isAlive, listProcesses, selectDescendants, signalProcess } from '../host/processes.ts'
import {
  containerdPlaces,
  detectLaunchMode,
  EmbeddedContainerdError,
  endContainerd,
  findContainerd,
  findShims,
} from './containerd/process.ts'
import type { ContainerdPlaces } from './containerd/process.ts'
import type { EmbeddedContainerdOptions } from './embedded-containerd.ts'
import { removeCniResults } from './network/cni-results.ts'
import { removeNetworkRules } from './network/forward-rules.ts'

/**
 * Ends an embedded containerd and removes everything it left on the host: containers that still run, shims, mounts,
 * network namespaces, the bridge, firewall rules, cgroups of its containers, and its run directory. Images and the
 * recorded subnet stay. Does nothing harmful when nothing runs. Pods that should get their grace period must be
 * terminated before.
 *
 * @throws PoddError naming what could not be removed; another call can remove that
 */
export async function removeEmbeddedContainerd(
  options: Pick<EmbeddedContainerdOptions, 'rootDir' | 'runDir' | 'clock' | 'launchMode'>,
): Promise<void> {
  const { clock } = options
  const places = containerdPlaces(options.rootDir, options.runDir)
  const containerd = findContainerd(places)
  if (containerd !== undefined) {
    await endContainerd(containerd, { places, clock, mode: options.launchMode ?? detectLaunchMode() })
  }
  const cgroups = await killContainers(places, clock)
  await removeMounts(places.runDir)
  await removeContainerCgroups(cgroups)
  await removeBridge(places)
  await removeNetworkRules(places)
  await removeShimSockets(places)
  await removeCniResults(places.networkName)
  await removeTree(places.runDir)
}

/** Nothing may be left mounted below the directory, or removing it would reach into what is mounted there. */
async function removeMounts(directory: string): Promise<void> {
  const below = (): readonly string[] => mountsBelow(directory, readMounts())
  for (const path of below()) await unlessGone(unmount(path), () => below().includes(path))
  const left = below()
  if (left.length > 0) throw new EmbeddedContainerdError(`cannot unmount ${left.join(', ')}`)
}

async function removeBridge(places: ContainerdPlaces): Promise<void> {
  const ip = findExecutable('ip')
  const { bridgeName } = places
  if (ip === undefined || !hasLink(bridgeName)) return
  await unlessGone(commandOutput(ip, ['link', 'delete', bridgeName]), () => hasLink(bridgeName))
}

/** /sys shows a link for a moment after it was removed. */
function hasLink(name: string): boolean {
  return (readTextIfThere('/proc/net/dev') ?? '')
    .split('\n')
    .some((line) => line.trimStart().startsWith(`${name}:`))
}

/** Tolerates a failed removal of something that is gone anyway: two processes may clean up at once. */
async function unlessGone(removal: Promise<unknown>, isThere: () => boolean): Promise<void> {
  try {
    await removal
  } catch (error) {
    if (isThere()) throw error
  }
}

/** Removes the sockets of killed shims, whose paths are in their bundles. */
async function removeShimSockets(places: ContainerdPlaces): Promise<void> {
  const tasks = join(places.stateDir, 'io.containerd.runtime.v2.task', 'k8s.io')
  // Without it no shim has run. A socket that stays costs nothing: the next boot clears /run.
  for (const id of await readdir(tasks).catch(() => [])) {
    const said = ['address', 'bootstrap.json']
      .map((name) => readTextIfThere(join(tasks, id, name)))
      .join('\n')
    for (const [, path] of said.matchAll(/unix:\/\/(\/run\/containerd\/s\/[0-9a-f]+)/g)) {
      if (path !== undefined) await rm(path, { force: true })
    }
  }
}

/** Rounds of killing, 20 ms apart. */
const maxRounds = 250

/** Kills what runs below this instance's shims, then these, once containerd has ended. Returns the cgroups. */
async function killContainers(places: ContainerdPlaces, clock: Clock): Promise<ReadonlySet<string>> {
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
      const own = readTextIfThere(`/proc/${process.pid}/cgroup`) ?? ''
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
async function removeContainerCgroups(cgroups: ReadonlySet<string>): Promise<void> {
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
