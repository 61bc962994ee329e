import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/logger.ts'
import { listProcesses, selectDescendants, signalProcess, waitForExit } from '../host/processes.ts'
import type { HostProcess } from '../host/processes.ts'
import { commandOutput, runCommand } from '../host/run-command.ts'
import type { ContainerdPlaces } from './containerd-places.ts'
import { findShims } from './containerd-process.ts'
import { findUnusedNetworks, removeNetworkNamespace } from './reap-networks.ts'

/** CRI's namespace. Whoever uses the others on this containerd (ctr, nerdctl) looks after them. */
const namespace = 'k8s.io'

/** Where containerd keeps a shim's files, below its state and below its root. */
const bundles = `io.containerd.runtime.v2.task/${namespace}`

const shimExitMs = 2000

/** By then podd has taken up, mended or removed the pods that are there. */
const firstLookMs = 3000
/** No container is between its creation and its start for that long: both are one call of CRI's. */
const taskLookMs = 10_000
/** No sandbox is in the making for that long. */
const secondLookMs = 20_000

export interface ReapOptions {
  readonly places: ContainerdPlaces
  readonly ctrPath: string
  readonly clock: Clock
  readonly logger: Logger
  readonly signal: AbortSignal
}

/**
 * Ends the shims and removes the network namespaces and addresses that containerd has forgotten. One that
 * is killed while it makes or removes a sandbox leaves such, and no later one finds them (1.6 and 2.1).
 * Removes tasks, too, that were made and never started: a podd that is killed in the middle of
 * StartContainer leaves one, of which CRI says that it has exited and which it then can't remove (1.6).
 * Looks twice, some time after podd or containerd has started, and logs what it does; never throws.
 */
export async function reapLeaks(options: ReapOptions): Promise<void> {
  const { places, clock, logger, signal } = options
  try {
    await clock.sleep(firstLookMs, signal)
    await reapShims(options)
    const before = findUnusedNetworks(places, await knownContainers(options))
    const unstarted = await unstartedTasks(options)
    await clock.sleep(taskLookMs, signal)
    const stillUnstarted = await unstartedTasks(options)
    const removed = unstarted.filter((task) => stillUnstarted.includes(task))
    for (const id of removed) {
      await ctr(options, ['tasks', 'delete', '--force', id])
      logger.warn({ id }, 'removed a task that nobody would have started any more')
    }
    await clock.sleep(secondLookMs, signal)
    await reapShims(options)
    // A sandbox whose making was called off may be in containerd's books and not in CRI's (2.1).
    const sandboxes = removed.length === 0 ? [] : await listSandboxes(options)
    for (const id of removed.filter((task) => sandboxes.includes(task))) {
      await ctr(options, ['containers', 'delete', id])
      logger.warn({ id }, 'removed a sandbox that nobody would have made any more')
    }
    const now = findUnusedNetworks(places, await knownContainers(options))
    const namespaces = now.namespaces.filter((path) => before.namespaces.includes(path))
    const addresses = now.addresses.filter((path) => before.addresses.includes(path))
    for (const path of namespaces) await removeNetworkNamespace(path)
    for (const path of addresses) await rm(path, { force: true })
    for (const path of [...namespaces, ...addresses])
      logger.warn({ path }, 'removed a network that containerd had forgotten')
  } catch (error) {
    if (!signal.aborted) logger.warn({ err: error }, 'cannot look for what containerd has forgotten')
  }
}

async function reapShims(options: ReapOptions): Promise<void> {
  const { places, clock, logger } = options
  // First the shims, then the containers: a container is in the books before its shim starts.
  const shims = findShims(places)
  if (shims.length === 0) return
  for (const { shim, id } of selectLeakedShims(shims, await knownContainers(options))) {
    for (const child of selectDescendants(listProcesses(), [shim.pid])) signalProcess(child, 'SIGKILL')
    signalProcess(shim, 'SIGKILL')
    await waitForExit(shim, shimExitMs, clock)
    const bundle = join(places.stateDir, bundles, id)
    await runCommand('umount', ['-l', join(bundle, 'rootfs')])
    await rm(bundle, { recursive: true, force: true })
    await rm(join(places.rootDir, bundles, id), { recursive: true, force: true })
    logger.warn({ id }, 'ended a shim that containerd had forgotten')
  }
}

async function knownContainers(options: ReapOptions): Promise<readonly string[]> {
  return (await ctr(options, ['containers', 'list', '--quiet'])).split('\n')
}

async function listSandboxes(options: ReapOptions): Promise<readonly string[]> {
  const filter = 'labels."io.cri-containerd.kind"==sandbox'
  return (await ctr(options, ['containers', 'list', '--quiet', filter])).split('\n')
}

async function unstartedTasks(options: ReapOptions): Promise<readonly string[]> {
  return parseUnstartedTasks(await ctr(options, ['tasks', 'list']))
}

function ctr({ places, ctrPath }: ReapOptions, args: readonly string[]): Promise<string> {
  return commandOutput(ctrPath, ['--address', places.socketPath, '--namespace', namespace, ...args])
}

/** The ids in `ctr tasks list` (task, pid, status) whose status says that they were made and not started. */
export function parseUnstartedTasks(table: string): readonly string[] {
  return table.split('\n').flatMap((line) => {
    const [id = '', , status] = line.trim().split(/\s+/)
    return status === 'CREATED' ? [id] : []
  })
}

/** The shims of CRI's namespace whose container is not among those that containerd knows there. */
export function selectLeakedShims(
  shims: readonly HostProcess[],
  known: readonly string[],
): readonly { readonly shim: HostProcess; readonly id: string }[] {
  return shims.flatMap((shim) => {
    const id = valueOf(shim.argv, '-id')
    if (id === undefined || valueOf(shim.argv, '-namespace') !== namespace) return []
    return !/^\w[\w-]*$/.test(id) || known.includes(id) ? [] : [{ shim, id }]
  })
}

function valueOf(argv: readonly string[], flag: string): string | undefined {
  const index = argv.indexOf(flag)
  return index === -1 ? undefined : argv[index + 1]
}
