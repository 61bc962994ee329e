/* Where containers log to: directories, links for log shippers, and the logs of pods that were removed. */
import { existsSync } from 'node:fs'
import { access, mkdir, readFile, readlink, rm, stat, symlink, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { removeTree, writeFileAtomic } from '../base/atomic-file.ts'
import { isoTime } from '../base/clock.ts'
import type { Clock } from '../base/clock.ts'
import { errorCode, ifThere } from '../base/errors.ts'
import { mapBounded } from '../base/waits.ts'
import type { LogsOfRemovedPod, LogFileFacts, LogSpaceFacts } from '../decide/node/plan-logs.ts'
import type { ContainerId, PodRef, PodUid } from '../pod/values/ids.ts'
import {
  containerLogPath,
  containerLogSymlink,
  mayLinkToLogOf,
  parseLogFileName,
  podLogDirectory,
} from '../translate/identity.ts'
import { listDirectory, listLogInstances, readLogFileName } from './log-files.ts'
import { readLog } from './read-log.ts'

/**
 * The most of a log that a termination message may take (`pkg/kubelet/container`,
 * MaxContainerTerminationMessageLogLines and -Length, 1.36).
 */
const maxTailLines = 80
const maxTailBytes = 2048
/** How far back these lines are searched: records of a single byte of text, some 42 bytes each, give 2048 in less. */
const tailSearchBytes = 256 * 1024

/** In a pod's directory: which podd made it. Its name hides it from log shippers. */
const ownerFile = '.podd-owner'

/** The key of a container's log. */
export interface LoggedContainer {
  readonly name: string
  readonly id: ContainerId
  readonly restartCount: number
}

/** The settings for keeping the logs of removed pods. */
export interface RemovedLogsPolicy {
  /** The retention; 0 removes them with their pods. */
  readonly keptMs: number
  /** podd's root directory, which distinguishes its pods from another podd's in the same place. */
  readonly owner: string
  readonly clock: Pick<Clock, 'wallMs'>
}

/** The directories that containers log to, and the links that log shippers read. Errors are the system's. */
export class ContainerLogDirectories {
  readonly #podLogsDir: string
  readonly #containerLogsDir: string
  readonly #removed: RemovedLogsPolicy | undefined
  /** Pod directories that are already marked. */
  readonly #marked = new Set<string>()

  constructor(options: {
    readonly podLogsDir: string
    readonly containerLogsDir: string
    readonly removed?: RemovedLogsPolicy
  }) {
    this.#removed = options.removed
    this.#podLogsDir = options.podLogsDir
    this.#containerLogsDir = options.containerLogsDir
  }

  directory(ref: PodRef): string {
    return podLogDirectory(this.#podLogsDir, ref)
  }

  /**
   * Creates the directory for a container's logs, and marks the pod's directory as this podd's; returns whether it is
   * new.
   */
  async prepare(ref: PodRef, container: string): Promise<boolean> {
    await mkdir(this.directory(ref), { recursive: true, mode: 0o755 })
    // Before the container's directory: where this fails, the next call still returns true.
    await this.#mark(ref)
    const directory = join(this.directory(ref), container)
    return (await mkdir(directory, { recursive: true, mode: 0o755 })) !== undefined
  }

  /**
   * Marks a pod's directory, unless another podd has. It is not synced: the pod's record, which is, leads to the logs
   * of every known pod. A mark that a power cut or a full disk left empty is written again.
   */
  async #mark(ref: PodRef): Promise<void> {
    const directory = this.directory(ref)
    if (this.#removed === undefined || this.#marked.has(directory)) return
    const path = join(directory, ownerFile)
    if ((await readOwner(path)) === '') await writeFile(path, this.#removed.owner, { mode: 0o644 })
    this.#marked.add(directory)
  }

  /** All pod directories, and whether they are this podd's. */
  async listMarked(): Promise<
    readonly { readonly path: string; readonly uid: PodUid; readonly isOwn: boolean }[]
  > {
    const names = await listDirectory(this.#podLogsDir)
    return mapBounded(names, async (name) => {
      const path = join(this.#podLogsDir, name)
      const owner = await readOwner(join(path, ownerFile))
      const isOwn = this.#removed !== undefined && owner === this.#removed.owner
      return { path, uid: name.slice(name.lastIndexOf('_') + 1), isOwn }
    })
  }

  /** This podd's pod directories with their pods' UIDs, except kept ones of removed pods. */
  async listOwn(): Promise<readonly { readonly path: string; readonly uid: PodUid }[]> {
    if (this.#removed === undefined) return []
    const { owner } = this.#removed
    const removed = await listRemovedPods(this.#podLogsDir, owner)
    const kept = new Set(removed.map(({ directory }) => directory))
    return (await this.listMarked()).filter(({ path, isOwn }) => isOwn && !kept.has(path))
  }

  /** The links to logs of pods whose directory is gone. */
  async listDeadLinks(): Promise<readonly string[]> {
    const found = await mapBounded(await listDirectory(this.#containerLogsDir), async (name) => {
      const path = join(this.#containerLogsDir, name)
      // It was removed meanwhile, or is no link: then it isn't podd's.
      const target = await readlink(path).catch(() => '')
      if (!target.startsWith(`${this.#podLogsDir}/`)) return []
      const [pod = ''] = target.slice(this.#podLogsDir.length + 1).split('/')
      const isThere = await access(join(this.#podLogsDir, pod)).then(
        () => true,
        (error: unknown) => errorCode(error) !== 'ENOENT',
      )
      return isThere ? [] : [path]
    })
    return found.flat()
  }

  /** The highest restart count with a log; undefined without one. */
  async newestInstance(ref: PodRef, container: string): Promise<number | undefined> {
    return (await listLogInstances(join(this.directory(ref), container))).at(-1)
  }

  /**
   * Points the container's link to its log, replacing another one of the same name. Marks the pod's directory too: that
   * of an adopted pod may have no mark. Returns whether there is a log: without one only a dangling link would be made
   * (`pkg/kubelet/kuberuntime/kuberuntime_container.go` startContainer, 1.36).
   */
  async link(ref: PodRef, container: LoggedContainer): Promise<boolean> {
    const log = join(this.directory(ref), containerLogPath(container.name, container.restartCount))
    const isThere = existsSync(log)
    if (isThere) await this.#link(ref, container)
    // Where the directory was removed, the next starting container recreates it.
    await ifThere(this.#mark(ref))
    return isThere
  }

  async #link(ref: PodRef, container: LoggedContainer): Promise<void> {
    const path = containerLogSymlink(this.#containerLogsDir, ref, container.name, container.id)
    const target = join(this.directory(ref), containerLogPath(container.name, container.restartCount))
    try {
      await symlink(target, path)
    } catch (error) {
      if (errorCode(error) === 'ENOENT') await mkdir(this.#containerLogsDir, { recursive: true, mode: 0o755 })
      else if (errorCode(error) !== 'EEXIST') throw error
      // Unchanged links stay, so that followers aren't disturbed.
      else if ((await readlink(path).catch(() => '')) === target) return
      else await unlink(path)
      await symlink(target, path)
    }
  }

  /** Removes the links to logs of this pod, except those of these containers. */
  async retainLinks(ref: PodRef, containers: readonly LoggedContainer[]): Promise<void> {
    const kept = containers.map(({ name, id }) => containerLogSymlink(this.#containerLogsDir, ref, name, id))
    for (const path of await this.#linksOf(ref)) if (!kept.includes(path)) await rm(path, { force: true })
  }

  /** Removes a container's link and its log, the rotated parts included. */
  async remove(ref: PodRef, container: LoggedContainer): Promise<void> {
    await rm(containerLogSymlink(this.#containerLogsDir, ref, container.name, container.id), { force: true })
    const directory = join(this.directory(ref), container.name)
    for (const file of await listDirectory(directory)) {
      if (parseLogFileName(file.replace(/\.tmp$/u, '')) === container.restartCount)
        await rm(join(directory, file), { force: true })
    }
  }

  /** The end of a container's log: at most 80 lines and 2048 bytes, whatever the log's size and its lines'. */
  async tail(ref: PodRef, container: string, restartCount: number): Promise<string> {
    let end: Buffer = Buffer.alloc(0)
    const options = { tailLines: maxTailLines, searchBytes: tailSearchBytes, timestamps: false }
    for await (const chunk of readLog(join(this.directory(ref), container), restartCount, options)) {
      end = Buffer.concat([end, chunk.subarray(-maxTailBytes)]).subarray(-maxTailBytes)
    }
    return end.toString('utf8')
  }

  /**
   * Removes the links to a pod's logs, and the logs unless those of removed pods are kept. They are removed at once on
   * a disk that can't be written.
   */
  async removeAll(ref: PodRef): Promise<void> {
    this.#marked.delete(this.directory(ref))
    for (const path of await this.#linksOf(ref)) await rm(path, { force: true })
    const { keptMs = 0, owner = '', clock } = this.#removed ?? {}
    if (clock !== undefined && keptMs > 0) {
      try {
        return await markRemoved(this.directory(ref), owner, clock.wallMs())
      } catch {
        // There are no logs, or the disk has no space.
      }
    }
    await removeLogs(this.directory(ref))
  }

  /** The size of these pods' logs, and of kept logs of removed pods. */
  async measure(pods: readonly PodRef[]): Promise<LogSpaceFacts> {
    const directories = new Set(pods.map((ref) => this.directory(ref)))
    const files = await mapBounded([...directories], (directory) => measurePodLogs(directory))
    const removed =
      this.#removed === undefined ? [] : await measureRemovedPods(this.#podLogsDir, this.#removed.owner)
    return {
      files: files.flat(),
      // A pod that exists again under its UID keeps these logs as its own.
      kept: removed.filter(({ directory }) => !directories.has(directory)),
    }
  }

  async #linksOf(ref: PodRef): Promise<readonly string[]> {
    const found: string[] = []
    for (const name of await listDirectory(this.#containerLogsDir)) {
      if (!mayLinkToLogOf(ref, name)) continue
      const path = join(this.#containerLogsDir, name)
      // It was removed meanwhile, or is no link: then it isn't podd's.
      const target = await readlink(path).catch(() => '')
      if (target.startsWith(`${this.directory(ref)}/`)) found.push(path)
    }
    return found
  }
}

/** The podd named by a mark; empty without a mark. Throws the system's other errors. */
async function readOwner(path: string): Promise<string> {
  const text = await ifThere(readFile(path, 'utf8'), nothingThere)
  // XFS returns zeros for data that a power cut lost.
  return text?.replaceAll('\0', '') ?? ''
}

const nothingThere = ['ENOENT', 'ENOTDIR']

/** A file in the log directory of a removed pod: when it was removed, and by which podd. Log shippers ignore it. */
const removedFile = '.podd-removed'

/** The log directory of a pod that was removed. */
export interface RemovedPodDirectory {
  readonly directory: string
  /** Wall milliseconds. */
  readonly removedAtMs: number
}

/** Notes that the pod of these logs is gone. Throws what the file system throws; ENOENT where there are no logs. */
export async function markRemoved(directory: string, owner: string, nowMs: number): Promise<void> {
  await writeFileAtomic(join(directory, removedFile), `${isoTime(nowMs)}\n${owner}\n`)
}

/**
 * The logs that were kept of removed pods, without their sizes. Throws what the file system throws.
 * @param owner the podd that kept them; undefined for any
 * @param prefix of their directories' names
 */
export async function listRemovedPods(
  podLogsDir: string,
  owner: string | undefined,
  prefix = '',
): Promise<readonly RemovedPodDirectory[]> {
  const found: RemovedPodDirectory[] = []
  for (const name of await listDirectory(podLogsDir)) {
    if (!name.startsWith(prefix)) continue
    const directory = join(podLogsDir, name)
    const text = await ifThere(readFile(join(directory, removedFile), 'utf8'), nothingThere)
    const [time = '', madeBy] = text?.split('\n') ?? []
    const removedAtMs = Date.parse(time)
    if ((owner === undefined || madeBy === owner) && !Number.isNaN(removedAtMs))
      found.push({ directory, removedAtMs })
  }
  return found
}

/** The same, with their sizes. */
async function measureRemovedPods(podLogsDir: string, owner: string): Promise<readonly LogsOfRemovedPod[]> {
  const removed = await listRemovedPods(podLogsDir, owner)
  return mapBounded(removed, async ({ directory, removedAtMs }) => ({
    directory,
    removedAtMs,
    files: await measurePodLogs(directory),
  }))
}

/** Removes a log file, or a directory with all logs in it, if it exists. */
export async function removeLogs(path: string): Promise<void> {
  try {
    await removeTree(path)
  } catch (error) {
    // An earlier podd had pods of such names: it never made their directories.
    if (errorCode(error) !== 'ENAMETOOLONG') throw error
  }
}

/** While a file is being compressed, and where that was interrupted. */
const temporarySuffix = '.tmp'

/**
 * The files of all logs in a pod's log directory, with their sizes; none where there is no directory. What isn't named as
 * a log is left out. Throws what the file system throws.
 */
async function measurePodLogs(directory: string): Promise<readonly LogFileFacts[]> {
  const found: LogFileFacts[] = []
  for (const container of await listDirectory(directory)) {
    for (const name of await listDirectory(join(directory, container))) {
      const file = readLogFileName(name.replace(/\.tmp$/u, ''))
      if (file === undefined) continue
      const path = join(directory, container, name)
      const stats = await ifThere(stat(path))
      if (stats?.isFile() !== true) continue
      // A file in creation is not part of the log yet.
      const isTemporary = name.endsWith(temporarySuffix)
      found.push({
        path,
        log: isTemporary ? path : join(directory, container, String(file.restartCount)),
        order: file.order,
        sizeBytes: stats.size,
        modifiedMs: stats.mtimeMs,
      })
    }
  }
  return found
}
