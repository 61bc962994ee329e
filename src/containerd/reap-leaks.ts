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
const nextLookMs = 30_000
/** What a busy containerd calls off late is seen by the second look only, and removed by the third. */
const looks = 3

export interface ReapOptions {
  readonly places: ContainerdPlaces
  readonly ctrPath: string
  /** The ids of all sandboxes that CRI knows. */
  readonly listSandboxes: () => Promise<ReadonlySet<string>>
  readonly clock: Clock
  readonly logger: Logger
  readonly signal: AbortSignal
}

interface Leaks {
  /** Sandboxes in containerd's books that CRI doesn't know. */
  readonly sandboxes: readonly string[]
  /** Paths of network namespaces. */
  readonly namespaces: readonly string[]
  /** Paths of files that say that an address is taken. */
  readonly addresses: readonly string[]
}

/**
 * Ends the shims and removes the sandboxes, network namespaces and addresses that containerd has forgotten. One
 * that is killed while it makes or removes a sandbox leaves such, and no later one finds them (1.6 and 2.1); nor
 * does CRI know of each sandbox whose making was called off (2.1).
 * Removes tasks, too, that were made and never started: a podd that is killed in the middle of
 * StartContainer leaves one, of which CRI says that it has exited and which it then can't remove (1.6).
 * Looks a few times, some time after podd or containerd has started: what is there twice is removed. Logs what it
 * does; never throws.
 */
export async function reapLeaks(options: ReapOptions): Promise<void> {
  const { clock, logger, signal } = options
  try {
    await clock.sleep(firstLookMs, signal)
    await reapShims(options)
    let before = await findLeaks(options)
    await reapUnstartedTasks(options)
    // The network of a sandbox that was removed is found, and found again, after that.
    for (let look = 1, isRemoving = true; look < looks || isRemoving; look++) {
      await clock.sleep(nextLookMs, signal)
      await reapShims(options)
      const now = await findLeaks(options)
      const leaks = selectStill(before, now)
      await removeLeaks(options, leaks)
      isRemoving = leaks.sandboxes.length > 0
      before = now
    }
  } catch (error) {
    if (!signal.aborted) logger.warn({ err: error }, 'cannot look for what containerd has forgotten')
  }
}

async function findLeaks(options: ReapOptions): Promise<Leaks> {
  // First containerd's books, then CRI's: what is made meanwhile is in both.
  const sandboxes = await containerdSandboxes(options)
  const known = await options.listSandboxes()
  return {
    sandboxes: sandboxes.filter((id) => !known.has(id)),
    ...findUnusedNetworks(options.places, await knownContainers(options)),
  }
}

function selectStill(before: Leaks, now: Leaks): Leaks {
  const still = (key: keyof Leaks): readonly string[] => now[key].filter((what) => before[key].includes(what))
  return {
    sandboxes: still('sandboxes'),
    namespaces: still('namespaces'),
    addresses: still('addresses'),
  }
}

async function removeLeaks(options: ReapOptions, leaks: Leaks): Promise<void> {
  const { logger } = options
  const tasks = leaks.sandboxes.length === 0 ? [] : (await listTasks(options)).map(({ id }) => id)
  for (const id of leaks.sandboxes) {
    if (tasks.includes(id)) await ctr(options, ['tasks', 'delete', '--force', id])
    await ctr(options, ['containers', 'delete', id])
    logger.warn({ id }, 'removed a sandbox that containerd had forgotten')
  }
  for (const path of leaks.namespaces) await removeNetworkNamespace(path)
  for (const path of leaks.addresses) await rm(path, { force: true })
  for (const path of [...leaks.namespaces, ...leaks.addresses])
    logger.warn({ path }, 'removed a network that containerd had forgotten')
}

async function reapUnstartedTasks(options: ReapOptions): Promise<void> {
  const { clock, logger, signal } = options
  const unstarted = await unstartedTasks(options)
  if (unstarted.length === 0) return
  await clock.sleep(taskLookMs, signal)
  const stillUnstarted = await unstartedTasks(options)
  for (const id of unstarted.filter((task) => stillUnstarted.includes(task))) {
    await ctr(options, ['tasks', 'delete', '--force', id])
    logger.warn({ id }, 'removed a task that nobody would have started any more')
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

async function containerdSandboxes(options: ReapOptions): Promise<readonly string[]> {
  const filter = 'labels."io.cri-containerd.kind"==sandbox'
  const ids = await ctr(options, ['containers', 'list', '--quiet', filter])
  return ids.split('\n').filter((id) => id !== '')
}

async function unstartedTasks(options: ReapOptions): Promise<readonly string[]> {
  return (await listTasks(options)).filter(({ status }) => status === 'CREATED').map(({ id }) => id)
}

async function listTasks(options: ReapOptions): Promise<readonly Task[]> {
  return parseTasks(await ctr(options, ['tasks', 'list']))
}

function ctr({ places, ctrPath }: ReapOptions, args: readonly string[]): Promise<string> {
  return commandOutput(ctrPath, ['--address', places.socketPath, '--namespace', namespace, ...args])
}

export interface Task {
  readonly id: string
  /** As containerd names it: CREATED, RUNNING, STOPPED, … */
  readonly status: string
}

/** What `ctr tasks list` prints: task, pid, status. */
export function parseTasks(table: string): readonly Task[] {
  return table.split('\n').flatMap((line) => {
    const [id = '', pid = '', status] = line.trim().split(/\s+/)
    return status === undefined || !/^\d+$/.test(pid) ? [] : [{ id, status }]
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
