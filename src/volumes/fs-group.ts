import { chmod, lchown, lstat, readdir } from 'node:fs/promises'

/** A pod's fsGroup, as it is applied to the volumes that the pod owns. */
export interface FsGroup {
  readonly gid: number
  /** `OnRootMismatch` leaves a volume alone whose top is right already. */
  readonly changePolicy: 'OnRootMismatch' | 'Always'
}

const readWrite = 0o660
const forFolders = 0o2110

/**
 * Gives a volume with all in it to a group: readable and writable for it, and new files come to belong to it.
 * Symbolic links themselves are given away, and never followed
 * (`pkg/volume/volume_linux.go` SetVolumeOwnership, 1.36).
 */
export async function applyFsGroup(folder: string, { gid, changePolicy }: FsGroup): Promise<void> {
  if (changePolicy === 'OnRootMismatch' && (await isGiven(folder, gid))) return
  // The top last: should podd be killed on the way, it is done again.
  for (const path of await readdir(folder, { recursive: true })) await give(`${folder}/${path}`, gid)
  await give(folder, gid)
}

async function isGiven(folder: string, gid: number): Promise<boolean> {
  const stats = await lstat(folder)
  const wanted = readWrite | forFolders
  return stats.gid === gid && (stats.mode & wanted) === wanted
}

async function give(path: string, gid: number): Promise<void> {
  const stats = await lstat(path)
  await lchown(path, stats.uid, gid)
  if (stats.isSymbolicLink()) return
  const mode = stats.mode & 0o7777
  await chmod(path, mode | readWrite | (stats.isDirectory() ? forFolders : 0))
}
