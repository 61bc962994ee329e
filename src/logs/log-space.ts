import { join } from 'node:path'
import type { LogFileFacts } from '../decide/node/plan-logs.ts'
import { listDirectory, readLogFileName } from './log-files.ts'
import { statIfThere } from './open-log.ts'

/** While a file is being compressed, and where that was interrupted. */
const temporarySuffix = '.tmp'

/**
 * The files of all logs in a pod's log directory, with their sizes; none where there is no directory. What isn't named as
 * a log is left out. Throws what the file system throws.
 */
export async function measurePodLogs(directory: string): Promise<readonly LogFileFacts[]> {
  const found: LogFileFacts[] = []
  for (const container of await listDirectory(directory)) {
    for (const name of await listDirectory(join(directory, container))) {
      const file = readLogFileName(name.replace(/\.tmp$/u, ''))
      if (file === undefined) continue
      const path = join(directory, container, name)
      const stats = await statIfThere(path)
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
