import { statfsSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { nearestExisting } from './host-probe.ts'

/** How much the disk that a path lies on can hold, and how much more a process that isn't root may write. */
export async function readDiskSpace(
  path: string,
): Promise<{ readonly capacityBytes: number; readonly availableBytes: number }> {
  const { blocks, bavail, bsize } = await statfs(path)
  return { capacityBytes: blocks * bsize, availableBytes: bavail * bsize }
}

/** The size of the disk that a path lies on, or will; undefined where that can't be told. */
export function diskBytes(path: string): number | undefined {
  try {
    const { blocks, bsize } = statfsSync(nearestExisting(path))
    return blocks * bsize
  } catch {
    // A file system that does not tell its size.
    return undefined
  }
}
