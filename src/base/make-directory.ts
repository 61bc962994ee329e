import { mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { errorCode } from './errors.ts'

/**
 * Creates a directory and its parents; it may exist. For user-given paths: below `/proc` and the like, where mkdir
 * always fails with ENOENT, Node's own recursion doesn't end.
 * @throws the system's error of the directory that can't be made; ENOTDIR where another file is in its place
 */
export async function makeDirectory(path: string, mode: number): Promise<void> {
  const parent = dirname(path)
  try {
    await makeOne(path, mode)
  } catch (error) {
    if (errorCode(error) !== 'ENOENT' || parent === path) throw error
    await makeDirectory(parent, mode)
    await makeOne(path, mode)
  }
}

/**
 * Calls `write`, which writes into the directory, and once more where the directory was missing, which is made then. To look
 * for it before each write costs two trips to a thread.
 * @throws what `write` and `makeDirectory` throw
 */
export async function writeInto(directory: string, mode: number, write: () => Promise<void>): Promise<void> {
  try {
    await write()
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error
    await makeDirectory(directory, mode)
    await write()
  }
}

async function makeOne(path: string, mode: number): Promise<void> {
  try {
    await mkdir(path, { mode })
  } catch (error) {
    if (errorCode(error) === 'ENOENT') throw error
    const isDirectory = await stat(path).then(
      (stats) => stats.isDirectory(),
      // The error of mkdir is thrown instead.
      () => false,
    )
    if (isDirectory) return
    if (errorCode(error) !== 'EEXIST') throw error
    throw Object.assign(new Error(`ENOTDIR: not a directory, mkdir '${path}'`), { code: 'ENOTDIR' })
  }
}
