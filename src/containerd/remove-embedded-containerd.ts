import { readFileSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { removeTree } from '../base/atomic-file.ts'
import type { Clock } from '../base/clock.ts'
import { findExecutable } from '../host/find-executable.ts'
import { mountsBelow, readMounts, unmount } from '../host/mounts.ts'
import { commandOutput } from '../host/run-command.ts'
import { removeCniResults } from './network/cni-results.ts'
import { containerdPlaces } from './process/containerd-places.ts'
import type { ContainerdPlaces } from './process/containerd-places.ts'
import { detectLaunchMode, endContainerd, findContainerd } from './process/containerd-process.ts'
import type { LaunchMode } from './process/containerd-process.ts'
import { EmbeddedContainerdError } from './process/embedded-containerd-error.ts'
import { removeNetworkRules } from './network/forward-rules.ts'
import { killContainers, removeContainerCgroups } from './process/kill-containers.ts'

export interface RemoveEmbeddedContainerdOptions {
  /** podd's root directory. */
  readonly rootDir: string
  /** podd's run directory. */
  readonly runDir: string
  readonly clock: Clock
  /** Overrides what the host's init implies. */
  readonly launchMode?: LaunchMode | undefined
}

/**
 * Ends an embedded containerd and removes everything it left on the host: containers that still run, shims, mounts,
 * network namespaces, the bridge, firewall rules, cgroups of its containers, and its run directory. Images and the
 * recorded subnet stay. Does nothing harmful when nothing runs. Pods that should get their grace period must be
 * terminated before.
 *
 * @throws PoddError naming what could not be removed; another call can remove that
 */
export async function removeEmbeddedContainerd(options: RemoveEmbeddedContainerdOptions): Promise<void> {
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
  return readOr('/proc/net/dev')
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
    const said = ['address', 'bootstrap.json'].map((name) => readOr(join(tasks, id, name))).join('\n')
    for (const [, path] of said.matchAll(/unix:\/\/(\/run\/containerd\/s\/[0-9a-f]+)/g)) {
      if (path !== undefined) await rm(path, { force: true })
    }
  }
}

function readOr(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // Each version of containerd writes only one of these files.
    return ''
  }
}
