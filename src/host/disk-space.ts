import { statfs } from 'node:fs/promises'

/** How much the disk that a path lies on can hold, and how much more a process that isn't root may write. */
export async function readDiskSpace(
  path: string,
): Promise<{ readonly capacityBytes: number; readonly availableBytes: number }> {
  const { blocks, bavail, bsize } = await statfs(path)
  return { capacityBytes: blocks * bsize, availableBytes: bavail * bsize }
}
