import { statfsSync } from 'node:fs'
import { nearestExisting } from './host-probe.ts'

/** The size of the disk that a path lies on, or will; undefined where that can't be told. */
export function diskBytes(path: string): number | undefined {
  try {
    const { blocks, bsize } = statfsSync(nearestExisting(path))
    return blocks * bsize
  } catch {
    return undefined
  }
}
