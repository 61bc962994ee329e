/*
 * Files and directories inside a volume, whose containers may replace any part of a path by a symbolic link meanwhile:
 * opened and made step by step, read within bounds, measured, and given to the pod's group. And where podd makes nothing.
 */
import { constants } from 'node:fs'
import type { Stats } from 'node:fs'
import { chmod, chown, lchown, lstat, mkdir, open, readdir, realpath } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { basename, dirname, join, normalize } from 'node:path'
import { errorCode, errorMessage, ifThere, PoddError } from '../base/errors.ts'
import { readAtOnce } from '../base/read-bounded.ts'

const nothingThere = ['ENOENT', 'ENOTDIR']

type VolumeErrorCode =
  /** The pod waits with a FailedMount event, and podd tries again. */
  | 'VOLUME_SETUP'
  /** Something on the host still uses it. */
  | 'VOLUME_TEARDOWN'

/** A volume could not be set up or taken down. */
export class VolumeError extends PoddError {
  /** The path of the host that is missing, where it could be set up with it. */
  readonly awaitedPath: string | undefined

  constructor(
    message: string,
    more: {
      readonly code?: VolumeErrorCode
      readonly cause?: unknown
      readonly hint?: string | undefined
      readonly awaitedPath?: string | undefined
    } = {},
  ) {
    super(more.code ?? 'VOLUME_SETUP', message, more)
    this.awaitedPath = more.awaitedPath ?? awaitedPathOf(more.cause)
  }
}

/** Of a volume's error, or of what was caused by one. */
export function awaitedPathOf(error: unknown): string | undefined {
  if (error instanceof VolumeError) return error.awaitedPath
  return error instanceof Error ? awaitedPathOf(error.cause) : undefined
}

/** O_PATH (open(2)): refers to a file without opening it; Node has no constant for it. */
const openPath = 0o10000000
/** Never through a symbolic link. */
const step = openPath | constants.O_NOFOLLOW

/**
 * Opens a path inside a directory as an O_PATH handle, and never anything outside, whatever a container does to the
 * directory meanwhile. Symbolic links are resolved once; the result must be inside the directory, and is then opened
 * one name after another without following links (`pkg/volume/util/subpath/subpath_linux.go` doBindSubPath, 1.36). The
 * caller closes the handle.
 * @throws VolumeError where it leaves the directory; the system's error (ENOENT) where nothing exists
 */
export async function openInside(directory: string, path: string): Promise<FileHandle> {
  const root = await realpath(directory)
  const target = await realpath(`${root}/${path}`)
  return walk(root, stepsBetween(root, target, path))
}

/**
 * The same for a directory, which is created with its parents where it doesn't exist (`doSafeMakeDir`, 1.36).
 * @param mode permission bits of created directories, independent of the umask
 */
export async function makeInside(directory: string, path: string, mode: number): Promise<FileHandle> {
  const root = await realpath(directory)
  const names = path.split('/').filter((name) => name !== '' && name !== '.')
  if (names.includes('..')) throw leadsOut(path)
  const existing = await deepestExisting(root, names)
  const known = stepsBetween(root, existing.target, path)
  return walk(root, [...known, ...existing.missing], { fromStep: known.length, mode })
}

async function walk(
  root: string,
  names: readonly string[],
  make?: { readonly fromStep: number; readonly mode: number },
): Promise<FileHandle> {
  let at = await openStep(root)
  for (const [index, name] of names.entries()) {
    await using below = at
    const path = `${handlePath(below)}/${name}`
    if (make !== undefined && index >= make.fromStep) await makeDirectory(path)
    at = await openStep(path)
    try {
      if ((await at.stat()).isSymbolicLink()) throw leadsOut(names.join('/'))
      if (make !== undefined && index >= make.fromStep) await setMode(at, make.mode)
    } catch (error) {
      await at.close()
      throw error
    }
  }
  return at
}

/** Opens exactly this name as an O_PATH handle; a symbolic link itself, not its target. */
function openStep(path: string): Promise<FileHandle> {
  return open(path, step)
}

function stepsBetween(root: string, target: string, path: string): readonly string[] {
  if (target === root) return []
  const prefix = root === '/' ? '/' : `${root}/`
  if (!target.startsWith(prefix)) throw leadsOut(path)
  return target.slice(prefix.length).split('/')
}

/** The deepest existing directory on the path, with links resolved, and the missing names below it. */
async function deepestExisting(
  root: string,
  names: readonly string[],
): Promise<{ readonly target: string; readonly missing: readonly string[] }> {
  for (let count = names.length; count > 0; count -= 1) {
    const target = await ifThere(realpath([root, ...names.slice(0, count)].join('/')))
    if (target !== undefined) return { target, missing: names.slice(count) }
  }
  return { target: root, missing: names }
}

function leadsOut(path: string): VolumeError {
  return new VolumeError(`path ${JSON.stringify(path)} leads out of its volume`)
}

/** A path by which this process reaches exactly the file of the handle. */
export function handlePath(handle: FileHandle): string {
  return `/proc/self/fd/${handle.fd}`
}

async function makeDirectory(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 })
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error
  }
}

/** An O_PATH handle can't be changed; reopens the directory through it. */
async function setMode(at: FileHandle, mode: number): Promise<void> {
  await using directory = await open(handlePath(at), constants.O_RDONLY | constants.O_DIRECTORY)
  await directory.chmod(mode)
}

const maxBytes = 1024 * 1024

/**
 * The text of a file inside a volume that containers may write to; undefined where there is none.
 * @throws VolumeError where it is no file, or larger than a mebibyte
 */
export async function readInside(directory: string, path: string): Promise<string | undefined> {
  await using handle = await ifThere(openInside(directory, path))
  if (handle === undefined) return undefined
  // A pipe or a device could block.
  if (!(await handle.stat()).isFile()) throw new VolumeError(`${path} is no file`)
  const bytes = await readAtOnce(handlePath(handle), maxBytes)
  if (bytes.byteLength > maxBytes) throw new VolumeError(`${path} is larger than ${maxBytes} bytes`)
  return bytes.toString('utf8')
}

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
    const stats = await ifThere(lstat(path), nothingThere)
    if (stats === undefined) return
    count(stats)
    if (!stats.isDirectory() || depth > maxDepth) return
    await using opened = await ifThere(openStep(path), nothingThere)
    if (opened === undefined) return
    // It has become a link meanwhile.
    const below = (await opened.stat()).isDirectory() ? await readdir(handlePath(opened)) : []
    for (const name of below) await visit(`${handlePath(opened)}/${name}`, depth + 1)
  }
  await visit(directory, 0)
  return { bytes, inodes }
}

/** A pod's fsGroup, as it is applied to the volumes that the pod owns. */
export interface FsGroup {
  readonly gid: number
  /** `OnRootMismatch` skips a volume whose root is already right. */
  readonly changePolicy: 'OnRootMismatch' | 'Always'
}

const readWrite = 0o660
const forDirectories = 0o2110

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
  await using top = await openStep(directory)
  await giveDirectory(top, { gid, depth: 0, refusals })
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
  await using entry = await ifThere(openStep(path))
  if (entry === undefined) return
  const stats = await entry.stat()
  if (stats.isDirectory()) return await giveDirectory(entry, { ...giving, depth: depth + 1 })
  if (!stats.isSymbolicLink()) await give(handlePath(entry), stats, giving)
  else await orRefused(refusals, () => ifThere(lchown(path, stats.uid, gid)))
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

/** Skips what is already right. Changing the owner clears set-id bits, so the mode is set afterwards. */
async function give(path: string, stats: Stats, { gid, refusals }: Giving): Promise<void> {
  const mode = stats.mode & 0o7777
  const wanted = mode | readWrite | (stats.isDirectory() ? forDirectories : 0)
  if (stats.gid !== gid) await orRefused(refusals, () => chown(path, stats.uid, gid))
  if (stats.gid !== gid || mode !== wanted) await orRefused(refusals, () => chmod(path, wanted))
}

/**
 * Where nothing may be made: what is there is the kernel's or the device manager's. A directory made in the place of a
 * device that is unplugged would keep it from coming back.
 */
const trees = ['/dev', '/sys', '/proc']
/** Shared memory, where programs make what they like. */
const sharedMemory = '/dev/shm'

/** The tree that a path which doesn't exist lies in, with links resolved as far as it exists; undefined outside of them. */
export async function findKernelTree(path: string): Promise<string | undefined> {
  const resolved = await resolveAsFar(normalize(path))
  if (isWithin(resolved, sharedMemory)) return undefined
  return trees.find((tree) => isWithin(resolved, tree))
}

async function resolveAsFar(path: string): Promise<string> {
  try {
    return await realpath(path)
  } catch (error) {
    const code = errorCode(error)
    if ((code !== 'ENOENT' && code !== 'ENOTDIR') || path === '/') return path
    return join(await resolveAsFar(dirname(path)), basename(path))
  }
}

function isWithin(path: string, directory: string): boolean {
  return path === directory || path.startsWith(`${directory}/`)
}
