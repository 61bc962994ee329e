import { readdir, stat } from 'node:fs/promises'
import { errorCode } from '../base/errors.ts'
import { parseLogFileName } from '../translate/log-path.ts'

/** One file of a container instance's log. */
export interface LogFile {
  readonly path: string
  readonly compressed: boolean
  /** When it was last written to, or compressed: nothing in it is newer. */
  readonly modifiedMs: number
  readonly sizeBytes: number
  readonly inode: number
}

interface NamedFile {
  readonly name: string
  readonly restartCount: number
  /** Sorts rotated files by age; the live file comes last. */
  readonly order: string
}

/** What stands after `N.log`; the name itself is judged by translate/log-path.ts. */
const rotatedSuffix = /\.log\.([\d.-]*\d)(?:\.gz)?$/u

/**
 * The files of one instance's log in a container's log directory, oldest first: those that rotation has
 * put aside (`N.log.YYYYMMDD-HHMMSS`, `….gz`; kubelet's logs/container_log_manager.go) and the live one.
 */
export async function listLogFiles(directory: string, restartCount: number): Promise<readonly LogFile[]> {
  const named = (await readNames(directory)).filter((file) => file.restartCount === restartCount)
  const byOrder = new Map<string, NamedFile>()
  for (const file of named) {
    // While a file is being compressed it stands there twice: the plain one is whole.
    const twin = byOrder.get(file.order)
    if (twin === undefined || twin.name.endsWith('.gz')) byOrder.set(file.order, file)
  }
  const ordered = [...byOrder.values()].sort((a, b) => (a.order < b.order ? -1 : 1))
  const files = await Promise.all(ordered.map((file) => statFile(`${directory}/${file.name}`)))
  return files.filter((file) => file !== undefined)
}

/** The restart counts that have a live log file, ascending; none where the directory is missing. */
export async function listLogInstances(directory: string): Promise<readonly number[]> {
  const counts = new Set((await readNames(directory)).map((file) => file.restartCount))
  return [...counts].sort((a, b) => a - b)
}

async function readNames(directory: string): Promise<readonly NamedFile[]> {
  let names: readonly string[]
  try {
    names = await readdir(directory)
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return []
    throw error
  }
  return names.flatMap((name) => {
    const restartCount = parseLogFileName(name)
    if (restartCount === undefined) return []
    return [{ name, restartCount, order: rotatedSuffix.exec(name)?.[1] ?? '~' }]
  })
}

async function statFile(path: string): Promise<LogFile | undefined> {
  try {
    const found = await stat(path)
    const compressed = path.endsWith('.gz')
    return { path, compressed, modifiedMs: found.mtimeMs, sizeBytes: found.size, inode: found.ino }
  } catch (error) {
    // Rotation took it away in between.
    if (errorCode(error) === 'ENOENT') return undefined
    throw error
  }
}
