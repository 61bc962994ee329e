import type { Stats } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { errorCode } from '../base/errors.ts'
import { listLogFiles } from './log-files.ts'
import type { LogFileName } from './log-files.ts'

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
const mostTries = 20

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
      if ((isSame && files.length === names.length) || tries === mostTries) return files
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

/** Undefined where the file is gone. */
export async function openIfThere(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, 'r')
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined
    throw error
  }
}

/** Undefined where the file is gone. */
export async function statIfThere(path: string): Promise<Stats | undefined> {
  try {
    return await stat(path)
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined
    throw error
  }
}

async function openFile(
  directory: string,
  { name, order, compressed }: LogFileName,
): Promise<LogFile | undefined> {
  const path = join(directory, name)
  const handle = compressed ? undefined : await openIfThere(path)
  if (!compressed && handle === undefined) return undefined
  const found = await (handle === undefined ? statIfThere(path) : handle.stat())
  if (found === undefined) return undefined
  return { order, path, modifiedMs: found.mtimeMs, sizeBytes: found.size, handle }
}

function sameNames(a: readonly LogFileName[], b: readonly LogFileName[]): boolean {
  return a.length === b.length && a.every(({ name }, index) => name === b[index]?.name)
}
