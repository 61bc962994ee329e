import { stat } from 'node:fs/promises'
import { describeOtherWriters } from './other-writers.ts'

export interface DirectoryIdentity {
  readonly isFile: boolean
  readonly device: bigint
  /** Changes when the directory is replaced. */
  readonly id: string
  /** Who beside root can write it, as text; for a single file, of that file. */
  readonly otherWriters: string | undefined
}

/** Throws what the system throws. */
export async function identify(directory: string): Promise<DirectoryIdentity> {
  const stats = await stat(directory, { bigint: true })
  const { dev, ino, birthtimeNs } = stats
  const isFile = stats.isFile()
  // A single file is often replaced; its directory stays the same.
  const id = isFile ? 'file' : `${dev}:${ino}:${birthtimeNs}`
  return { isFile, device: dev, id, otherWriters: isFile ? undefined : describeOtherWriters(stats) }
}
