/* The files of a container's log, by their names, and opening them while rotation renames them. */
import { open, readdir, stat } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { ifThere } from '../base/errors.ts'
import { parseLogFileName } from '../translate/identity.ts'

/** One file of a container instance's log, by its name. */
export interface LogFileName {
  readonly name: string
  readonly restartCount: number
  /** Sorts the files of one instance by age. */
  readonly order: string
  readonly compressed: boolean
}

/** The order of the live file, after all rotated ones. */
export const liveOrder = '~'

/** The suffix after `N.log`; translate/identity.ts parses the name itself. */
const rotatedSuffix = /\.log\.([\d.-]*\d)(?:\.gz)?$/u

/** Undefined for what is no log file. */
export function readLogFileName(name: string): LogFileName | undefined {
  const restartCount = parseLogFileName(name)
  if (restartCount === undefined) return undefined
  return {
    name,
    restartCount,
    order: rotatedSuffix.exec(name)?.[1] ?? liveOrder,
    compressed: name.endsWith('.gz'),
  }
}

/**
 * The files of one instance's log in a container's log directory, oldest first: those that rotation has
 * put aside (`N.log.YYYYMMDD-HHMMSS`, `….gz`; kubelet's logs/container_log_manager.go) and the live one.
 */
export async function listLogFiles(directory: string, restartCount: number): Promise<readonly LogFileName[]> {
  const byOrder = new Map<string, LogFileName>()
  for (const file of await readNames(directory)) {
    if (file.restartCount !== restartCount) continue
    // While a file is being compressed it exists twice: the plain one is complete.
    const twin = byOrder.get(file.order)
    if (twin === undefined || twin.compressed) byOrder.set(file.order, file)
  }
  return [...byOrder.values()].sort((a, b) => (a.order < b.order ? -1 : 1))
}

/** The restart counts of which there is a log, ascending; none where the directory is missing. */
export async function listLogInstances(directory: string): Promise<readonly number[]> {
  const counts = new Set((await readNames(directory)).map((file) => file.restartCount))
  return [...counts].sort((a, b) => a - b)
}

async function readNames(directory: string): Promise<readonly LogFileName[]> {
  return (await listDirectory(directory)).flatMap((name) => readLogFileName(name) ?? [])
}

/** Empty where it doesn't exist or isn't a directory; nothing has a name that is too long for a file. */
export async function listDirectory(path: string): Promise<readonly string[]> {
  return (await ifThere(readdir(path), ['ENOENT', 'ENOTDIR', 'ENAMETOOLONG'])) ?? []
}

/** One file of a log that is about to be read. */
export interface LogFile {
  readonly order: string
  readonly path: string
  /** When it was last written to, or compressed, in wall milliseconds. */
  readonly modifiedMs: number
  readonly sizeBytes: number
  /** Open where the file isn't compressed: rotation may rename, compress and remove it meanwhile. */
  readonly handle: FileHandle | undefined
}

/** Rotation changes a log's files every few seconds at most. */
const maxTries = 20

/**
 * Opens the files of one instance's log, as of one moment, oldest first. The caller closes the handles. Throws what the
 * file system throws.
 */
export async function openLog(directory: string, restartCount: number): Promise<readonly LogFile[]> {
  for (let tries = 1; ; tries += 1) {
    const names = await listLogFiles(directory, restartCount)
    const files: LogFile[] = []
    try {
      for (const name of names) {
        const file = await openFile(directory, name)
        if (file !== undefined) files.push(file)
      }
      // A file renamed in between would occur twice, or not at all.
      const isSame = sameNames(names, await listLogFiles(directory, restartCount))
      if ((isSame && files.length === names.length) || tries === maxTries) return files
    } catch (error) {
      await closeLog(files)
      throw error
    }
    await closeLog(files)
  }
}

export async function closeLog(files: readonly LogFile[]): Promise<void> {
  for (const { handle } of files) await handle?.close()
}

async function openFile(
  directory: string,
  { name, order, compressed }: LogFileName,
): Promise<LogFile | undefined> {
  const path = join(directory, name)
  const handle = compressed ? undefined : await ifThere(open(path))
  if (!compressed && handle === undefined) return undefined
  const found = await (handle === undefined ? ifThere(stat(path)) : handle.stat())
  if (found === undefined) return undefined
  return { order, path, modifiedMs: found.mtimeMs, sizeBytes: found.size, handle }
}

function sameNames(a: readonly LogFileName[], b: readonly LogFileName[]): boolean {
  return a.length === b.length && a.every(({ name }, index) => name === b[index]?.name)
}
