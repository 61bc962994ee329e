import { readdir } from 'node:fs/promises'
import { errorCode } from '../base/errors.ts'
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

/** The suffix after `N.log`; translate/identity/log-path.ts parses the name itself. */
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
  try {
    return await readdir(path)
  } catch (error) {
    if (missing.has(errorCode(error))) return []
    throw error
  }
}

const missing: ReadonlySet<string | undefined> = new Set(['ENOENT', 'ENOTDIR', 'ENAMETOOLONG'])
