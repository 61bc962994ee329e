import { rm } from 'node:fs/promises'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import { commandOutput } from '../../host/run-command.ts'
import type { ContainerdPlaces } from '../process/containerd-places.ts'
import { findUnusedNetworks, removeNetworkNamespace } from './reap-networks.ts'
import { reapShims } from './reap-shims.ts'

/** By then podd has taken up, mended or removed the pods that are there. */
const firstLookMs = 3000
/** Somebody else's container isn't between its creation and its start for that long. */
const taskLookMs = 10_000
const nextLookMs = 30_000
/** What a busy containerd cancels late is found by the second comparison only, and removed by the third. */
const looks = 3
/** Calls come to their end in minutes; a sandbox that can't be removed isn't for ever in the way either. */
const mostLooks = 20

/** What CRI knows. */
export interface CriKnowledge {
  /** The ids of all sandboxes and containers but those in the making. */
  list(): Promise<ReadonlySet<string>>
  /** Whether anything is in the making, a sandbox, a container or its process, that was asked for by then (monotonic time). */
  isAnyInTheMaking(sinceMs: number): boolean
}

export interface ReapOptions {
  readonly places: ContainerdPlaces
  readonly ctrPath: string
  readonly known: CriKnowledge
  readonly clock: Clock
  readonly logger: Logger
  readonly signal: AbortSignal
}

interface Leaks {
  /** Sandboxes, and containers without a task, in containerd's books that CRI doesn't know. */
  readonly containers: readonly string[]
  /** Paths of network namespaces. */
  readonly namespaces: readonly string[]
  /** Paths of files that say that an address is taken. */
  readonly addresses: readonly string[]
}

/**
 * Kills orphaned shims and removes orphaned sandboxes, network namespaces and addresses. A containerd that is killed
 * while it creates or removes a sandbox leaves them, and no later one finds them (1.6 and 2.1); nor does CRI list each
 * sandbox whose creation was cancelled (2.1), or each container whose creation failed on a full disk.
 * It also removes tasks that were created and never started: a podd that is killed during StartContainer leaves one,
 * which CRI reports as exited and then can't remove (1.6).
 *
 * Checks a few times, some time after podd or containerd has started. What two checks have found is removed, unless it
 * may belong to a sandbox in creation: CRI does not list that until it is done. Never throws.
 */
export async function reapLeaks(options: ReapOptions): Promise<void> {
  const { clock, logger, known, signal } = options
  let before: (Leaks & { readonly atMs: number }) | undefined
  let problem = ''
  let left = looks
  try {
    await clock.sleep(firstLookMs, signal)
    for (let look = 0; left > 0 && look < mostLooks; look++) {
      if (look > 0) await clock.sleep(nextLookMs, signal)
      try {
        // Asked before the look: what is done by now is found as it is.
        const isUnsure = before !== undefined && known.isAnyInTheMaking(before.atMs)
        await reapShims({ ...options, listContainers: () => knownContainers(options) })
        const now = await findLeaks(options)
        // What is sent from now on isn't among them.
        const atMs = clock.monotonicMs()
        if (before === undefined) await reapUnstartedTasks(options)
        if (!isUnsure) left -= 1
        // Its network is found, and found again, after it.
        if (before !== undefined && !isUnsure && (await removeLeaks(options, selectStill(before, now))))
          left = looks - 1
        before = { ...now, atMs }
      } catch (error) {
        signal.throwIfAborted()
        const message = String(error)
        if (message !== problem)
          logger.warn({ err: error }, 'cannot list orphaned sandboxes, shims and networks')
        problem = message
      }
    }
  } catch {
    // podd ends, or containerd did.
  }
}

async function findLeaks(options: ReapOptions): Promise<Leaks> {
  // First containerd's books, then CRI's: what is made meanwhile is in both.
  const sandboxes = await listOfKind(options, 'sandbox')
  const containers = await listOfKind(options, 'container')
  const known = await options.known.list()
  const tasks = new Set((await listTasks(options)).map(({ id }) => id))
  return {
    containers: [...sandboxes, ...containers.filter((id) => !tasks.has(id))].filter((id) => !known.has(id)),
    ...findUnusedNetworks(options.places, await knownContainers(options)),
  }
}

function selectStill(before: Leaks, now: Leaks): Leaks {
  const still = (key: keyof Leaks): readonly string[] => now[key].filter((what) => before[key].includes(what))
  return {
    containers: still('containers'),
    namespaces: still('namespaces'),
    addresses: still('addresses'),
  }
}

/** Gives whether a sandbox or container was among them. */
async function removeLeaks(options: ReapOptions, leaks: Leaks): Promise<boolean> {
  const { logger, signal } = options
  let removed = 0
  for (const id of leaks.containers) {
    signal.throwIfAborted()
    try {
      if (await removeContainer(options, id)) removed += 1
    } catch (error) {
      logger.warn({ id, err: error }, 'cannot remove an orphaned container, which CRI does not list')
    }
  }
  signal.throwIfAborted()
  for (const path of leaks.namespaces) await removeNetworkNamespace(path)
  for (const path of leaks.addresses) await rm(path, { force: true })
  for (const path of [...leaks.namespaces, ...leaks.addresses])
    logger.warn({ path }, 'removed an orphaned pod network')
  return removed > 0
}

async function removeContainer(options: ReapOptions, id: string): Promise<boolean> {
  // The last one took its time, perhaps.
  if ((await options.known.list()).has(id)) return false
  const tasks = await listTasks(options)
  if (tasks.some((task) => task.id === id)) await ctr(options, ['tasks', 'delete', '--force', id])
  await ctr(options, ['containers', 'delete', id])
  options.logger.warn({ id }, 'removed an orphaned container, which CRI does not list')
  return true
}

async function reapUnstartedTasks(options: ReapOptions): Promise<void> {
  const { clock, logger, known, signal } = options
  const unstarted = await unstartedTasks(options)
  const seenMs = clock.monotonicMs()
  if (unstarted.length === 0) return
  await clock.sleep(taskLookMs, signal)
  if (known.isAnyInTheMaking(seenMs)) return
  const stillUnstarted = await unstartedTasks(options)
  for (const id of unstarted.filter((task) => stillUnstarted.includes(task))) {
    await ctr(options, ['tasks', 'delete', '--force', id])
    logger.warn({ id }, 'removed an orphaned task that was never started')
  }
}

async function knownContainers(options: ReapOptions): Promise<readonly string[]> {
  return (await ctr(options, ['containers', 'list', '--quiet'])).split('\n')
}

async function listOfKind(options: ReapOptions, kind: 'sandbox' | 'container'): Promise<readonly string[]> {
  const filter = `labels."io.cri-containerd.kind"==${kind}`
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
  return commandOutput(ctrPath, ['--address', places.socketPath, '--namespace', 'k8s.io', ...args])
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
