import { statfsSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { nearestExisting } from './host-probe.ts'

/** The capacity of a path's file system, and the bytes still available to processes other than root's. */
export async function readDiskSpace(
  path: string,
): Promise<{ readonly capacityBytes: number; readonly availableBytes: number }> {
  const { blocks, bavail, bsize } = await statfs(path)
  return { capacityBytes: blocks * bsize, availableBytes: bavail * bsize }
}

/** The capacity of the file system of a path, which may not exist yet; undefined where unknown. */
export function diskBytes(path: string): number | undefined {
  try {
    const { blocks, bsize } = statfsSync(nearestExisting(path))
    return blocks * bsize
  } catch {
    // A file system that does not tell its size.
    return undefined
  }
}
