import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { mapBounded } from '../base/waits.ts'
import { writeFileAtomic, removeTree } from '../base/atomic-file.ts'
import { errorCode } from '../base/errors.ts'
import type { KeptLogs } from '../decide/node/plan-logs.ts'
import { listDirectory } from './log-files.ts'
import { measurePodLogs } from './log-space.ts'

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
  await writeFileAtomic(join(directory, removedFile), `${new Date(nowMs).toISOString()}\n${owner}\n`)
}

/** Which logs to list. */
export interface RemovedPodQuery {
  /** The podd that kept them; by default any. */
  readonly owner?: string
  /** The prefix of their directories' names. */
  readonly prefix?: string
}

/** The logs that were kept of removed pods, without their sizes. Throws what the file system throws. */
export async function listRemovedPods(
  podLogsDir: string,
  { owner, prefix = '' }: RemovedPodQuery,
): Promise<readonly RemovedPodDirectory[]> {
  const found: RemovedPodDirectory[] = []
  for (const name of await listDirectory(podLogsDir)) {
    if (!name.startsWith(prefix)) continue
    const directory = join(podLogsDir, name)
    const text = await readIfThere(join(directory, removedFile))
    const [time = '', madeBy] = text?.split('\n') ?? []
    const removedAtMs = Date.parse(time)
    if ((owner === undefined || madeBy === owner) && !Number.isNaN(removedAtMs))
      found.push({ directory, removedAtMs })
  }
  return found
}

/** The same, with their sizes. */
export async function measureRemovedPods(podLogsDir: string, owner: string): Promise<readonly KeptLogs[]> {
  const removed = await listRemovedPods(podLogsDir, { owner })
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

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR') return undefined
    throw error
  }
}
