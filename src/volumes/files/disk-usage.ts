import type { Stats } from 'node:fs'
import { lstat, readdir } from 'node:fs/promises'
import { errorCode } from '../../base/errors.ts'
import { handlePath, openStep } from './open-inside.ts'

/** The deepest level that is counted; each level holds a file open. */
const maxDepth = 512

/** The bytes of `measureDirectory`. */
export async function measureDiskUsage(directory: string): Promise<number> {
  return (await measureDirectory(directory)).bytes
}

/**
 * The bytes and inodes of a directory and its content, counting hard links once, as `du` does. Files removed meanwhile
 * are left out; links are never followed, whatever a container replaces meanwhile.
 */
export async function measureDirectory(
  directory: string,
): Promise<{ readonly bytes: number; readonly inodes: number }> {
  const seen = new Set<number>()
  let bytes = 0
  let inodes = 0
  const count = (stats: Stats): void => {
    if (stats.nlink > 1 && !stats.isDirectory()) {
      if (seen.has(stats.ino)) return
      seen.add(stats.ino)
    }
    bytes += stats.blocks * 512
    inodes += 1
  }
  const visit = async (path: string, depth: number): Promise<void> => {
    const stats = await ifThere(lstat(path))
    if (stats === undefined) return
    count(stats)
    if (!stats.isDirectory() || depth > maxDepth) return
    const opened = await ifThere(openStep(path))
    if (opened === undefined) return
    try {
      // It has become a link meanwhile.
      const below = (await opened.stat()).isDirectory() ? await readdir(handlePath(opened)) : []
      for (const name of below) await visit(`${handlePath(opened)}/${name}`, depth + 1)
    } finally {
      await opened.close()
    }
  }
  await visit(directory, 0)
  return { bytes, inodes }
}

async function ifThere<T>(found: Promise<T>): Promise<T | undefined> {
  try {
    return await found
  } catch (error) {
    const code = errorCode(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw error
  }
}
