import { closeSync, openSync, readSync, statSync } from 'node:fs'
import { copyFile, rm, truncate } from 'node:fs/promises'

/** containerd's log is cut when it has grown beyond this; one older part is kept. */
const maxLogBytes = 5 * 1024 * 1024

/**
 * Keeps the log bounded. containerd appends, so the file can be copied away and emptied under it; a
 * line written in between is lost. Where the copy fails, as on a full disk, the log is emptied all the
 * same, and the error thrown then.
 */
export async function boundContainerdLog(logPath: string): Promise<void> {
  if (sizeOf(logPath) <= maxLogBytes) return
  const olderPath = `${logPath}.1`
  try {
    await copyFile(logPath, olderPath)
  } catch (error) {
    await rm(olderPath, { force: true }).catch(() => undefined)
    throw error
  } finally {
    await truncate(logPath)
  }
}

/** Size of the log now; what is written later can then be read by `readLogFrom`. */
export function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}

/**
 * Why containerd did not start, from what it logged: the first plugin that failed, for the others fail
 * because of it, and the last errors. Empty when it said nothing of the kind.
 */
export function parseLogErrors(log: string): readonly string[] {
  const lines = log.split('\n')
  const firstFailure = lines.find((line) => line.includes('msg="failed to load plugin'))
  const failures = lines.flatMap((line) => {
    if (line.startsWith('containerd: ')) return [line.slice(12)]
    return /level=(?:fatal|error|panic) /.test(line) ? [formatLogLine(line)] : []
  })
  const first = firstFailure === undefined ? [] : [formatLogLine(firstFailure)]
  return [...new Set([...first, ...failures.slice(-2)])]
}

/** Message and error of a line in logrus's text format. */
function formatLogLine(line: string): string {
  const read = (key: string): string | undefined =>
    new RegExp(` ${key}="((?:[^"\\\\]|\\\\.)*)"`).exec(line)?.[1]?.replaceAll('\\"', '"')
  return [read('msg'), read('error')].filter((part) => part !== undefined).join(': ')
}

/** What was logged since `offset`, 64 KiB of it at most; empty where there is no log. */
export function readLogFrom(path: string, offset: number): string {
  try {
    const fd = openSync(path, 'r')
    try {
      const buffer = Buffer.alloc(64 * 1024)
      const start = Math.max(offset, sizeOf(path) - buffer.length)
      return buffer.toString('utf8', 0, readSync(fd, buffer, 0, buffer.length, start))
    } finally {
      closeSync(fd)
    }
  } catch {
    // The log only adds to an error that is reported anyway.
    return ''
  }
}
