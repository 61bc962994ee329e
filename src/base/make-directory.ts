import { mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { errorCode } from './errors.ts'

/**
 * Makes a directory and those above it; one that is there is fine. For paths that people give: below `/proc` and the like,
 * where mkdir says ENOENT for ever, Node's own recursion doesn't end.
 * @throws the system's error of the directory that can't be made; ENOTDIR where something else is in its place
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

async function makeOne(path: string, mode: number): Promise<void> {
  try {
    await mkdir(path, { mode })
  } catch (error) {
    if (errorCode(error) === 'ENOENT') throw error
    const isDirectory = await stat(path).then(
      (stats) => stats.isDirectory(),
      () => false,
    )
    if (isDirectory) return
    if (errorCode(error) !== 'EEXIST') throw error
    throw Object.assign(new Error(`ENOTDIR: not a directory, mkdir '${path}'`), { code: 'ENOTDIR' })
  }
}
