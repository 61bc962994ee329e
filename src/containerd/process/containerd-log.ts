import { closeSync, openSync, readSync, statSync } from 'node:fs'
import { copyFile, truncate } from 'node:fs/promises'
import { tryRemove } from '../../base/atomic-file.ts'

/** The size at which containerd's log is rotated; one older file is kept. */
const maxLogBytes = 5 * 1024 * 1024

/**
 * Bounds the log. containerd appends, so the file can be copied and truncated while it is open; a line written in
 * between is lost. Where the copy fails, as on a full disk, the log is truncated nevertheless, and then the error
 * thrown.
 */
export async function boundContainerdLog(logPath: string): Promise<void> {
  if (sizeOf(logPath) <= maxLogBytes) return
  const olderPath = `${logPath}.1`
  try {
    await copyFile(logPath, olderPath)
  } catch (error) {
    await tryRemove(olderPath)
    throw error
  } finally {
    await truncate(logPath)
  }
}

/** The size of the log, from which `readLogFrom` reads later lines. */
export function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}

/**
 * Why containerd did not start, from its log: the first plugin that failed, since others fail because of it, and the
 * last errors. Empty when the log has neither.
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

/** The log from `offset` on, 64 KiB at most; empty where there is no log. */
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
    // The log only adds detail to an error that is reported anyway.
    return ''
  }
}
