import type { Stats } from 'node:fs'
import { lstat, readdir } from 'node:fs/promises'
import { errorCode } from '../base/errors.ts'

/**
 * The bytes of disk that a folder takes with all in it, files of several names once, as `du` counts.
 * What vanishes meanwhile is left out.
 */
export async function measureDiskUsage(folder: string): Promise<number> {
  const seen = new Set<number>()
  let usedBytes = 0
  const count = (stats: Stats): void => {
    if (stats.nlink > 1 && !stats.isDirectory()) {
      if (seen.has(stats.ino)) return
      seen.add(stats.ino)
    }
    usedBytes += stats.blocks * 512
  }
  const visit = async (path: string): Promise<void> => {
    const stats = await ifThere(lstat(path))
    if (stats === undefined) return
    count(stats)
    if (!stats.isDirectory()) return
    for (const name of (await ifThere(readdir(path))) ?? []) await visit(`${path}/${name}`)
  }
  await visit(folder)
  return usedBytes
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
