import type { Stats } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { chmod, chown, lchown, lstat, readdir } from 'node:fs/promises'
import { errorCode, errorMessage } from '../../base/errors.ts'
import { handlePath, openStep } from './open-inside.ts'

/** A pod's fsGroup, as it is applied to the volumes that the pod owns. */
export interface FsGroup {
  readonly gid: number
  /** `OnRootMismatch` skips a volume whose root is already right. */
  readonly changePolicy: 'OnRootMismatch' | 'Always'
}

const readWrite = 0o660
const forDirectories = 0o2110
/** The deepest level; each one holds a file open. */
const maxDepth = 512

/** The files whose owner could not be changed. */
interface Refusals {
  count: number
  first: string | undefined
}

/**
 * Changes the group of a volume and its content: the group may read and write, and new files inherit it
 * (`pkg/volume/volume_linux.go` SetVolumeOwnership, 1.36). Symbolic links themselves are changed and never followed,
 * whatever a container on the same volume replaces meanwhile: each file is opened once, relative to its open directory,
 * and changed through that handle. A file that can't be changed (immutable, or on a filesystem without owners) stays as
 * it is, as in the kubelet; returns a message about these.
 */
export async function applyFsGroup(
  directory: string,
  { gid, changePolicy }: FsGroup,
): Promise<string | undefined> {
  if (changePolicy === 'OnRootMismatch' && (await isGiven(directory, gid))) return undefined
  const refusals: Refusals = { count: 0, first: undefined }
  const top = await openStep(directory)
  try {
    await giveDirectory(top, { gid, depth: 0, refusals })
  } finally {
    await top.close()
  }
  const { count, first } = refusals
  if (first === undefined) return undefined
  return `cannot give all of it to group ${gid}: ${first}${count === 1 ? '' : `, and ${count - 1} more`}`
}

async function isGiven(directory: string, gid: number): Promise<boolean> {
  const stats = await lstat(directory)
  const wanted = readWrite | forDirectories
  return stats.gid === gid && (stats.mode & wanted) === wanted
}

/** The directory itself comes last, so that a podd that was killed on the way repeats the work. */
async function giveDirectory(directory: FileHandle, giving: Giving): Promise<void> {
  const { depth, refusals } = giving
  if (depth > maxDepth)
    return refuse(refusals, `its directories are nested more than ${maxDepth} levels deep`)
  const at = handlePath(directory)
  for (const name of await readdir(at)) await giveEntry(`${at}/${name}`, giving)
  return give(at, await directory.stat(), giving)
}

interface Giving {
  readonly gid: number
  readonly depth: number
  readonly refusals: Refusals
}

async function giveEntry(path: string, giving: Giving): Promise<void> {
  const { gid, depth, refusals } = giving
  const entry = await ifThere(openStep(path))
  if (entry === undefined) return
  try {
    const stats = await entry.stat()
    if (stats.isDirectory()) return await giveDirectory(entry, { ...giving, depth: depth + 1 })
    if (!stats.isSymbolicLink()) await give(handlePath(entry), stats, giving)
    else await orRefused(refusals, () => ifThere(lchown(path, stats.uid, gid)))
  } finally {
    await entry.close()
  }
}

async function orRefused(refusals: Refusals, act: () => Promise<unknown>): Promise<void> {
  try {
    await act()
  } catch (error) {
    refuse(refusals, errorMessage(error))
  }
}

function refuse(refusals: Refusals, message: string): void {
  refusals.count += 1
  refusals.first ??= message
}

/** Undefined for a file that a container removed meanwhile. */
async function ifThere<T>(act: Promise<T>): Promise<T | undefined> {
  try {
    return await act
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined
    throw error
  }
}

/** Skips what is already right. Changing the owner clears set-id bits, so the mode is set afterwards. */
async function give(path: string, stats: Stats, { gid, refusals }: Giving): Promise<void> {
  const mode = stats.mode & 0o7777
  const wanted = mode | readWrite | (stats.isDirectory() ? forDirectories : 0)
  if (stats.gid !== gid) await orRefused(refusals, () => chown(path, stats.uid, gid))
  if (stats.gid !== gid || mode !== wanted) await orRefused(refusals, () => chmod(path, wanted))
}
