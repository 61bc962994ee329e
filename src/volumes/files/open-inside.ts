import type { FileHandle } from 'node:fs/promises'
import { mkdir, open, realpath } from 'node:fs/promises'
import { constants } from 'node:fs'
import { errorCode } from '../../base/errors.ts'
import { VolumeError } from './volume-error.ts'

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

/** The deepest existing directory on the path, with links resolved, and the missing names below it. */
async function deepestExisting(
  root: string,
  names: readonly string[],
): Promise<{ readonly target: string; readonly missing: readonly string[] }> {
  for (let count = names.length; count > 0; count -= 1) {
    try {
      const target = await realpath([root, ...names.slice(0, count)].join('/'))
      return { target, missing: names.slice(count) }
    } catch (error) {
      if (errorCode(error) !== 'ENOENT') throw error
    }
  }
  return { target: root, missing: names }
}

function stepsBetween(root: string, target: string, path: string): readonly string[] {
  if (target === root) return []
  const prefix = root === '/' ? '/' : `${root}/`
  if (!target.startsWith(prefix)) throw leadsOut(path)
  return target.slice(prefix.length).split('/')
}

async function walk(
  root: string,
  names: readonly string[],
  make?: { readonly fromStep: number; readonly mode: number },
): Promise<FileHandle> {
  let at = await openStep(root)
  for (const [index, name] of names.entries()) {
    const below = at
    try {
      const path = `${handlePath(below)}/${name}`
      if (make !== undefined && index >= make.fromStep) await makeDirectory(path)
      at = await openStep(path)
    } finally {
      await below.close()
    }
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

async function makeDirectory(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 })
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error
  }
}

/** An O_PATH handle can't be changed; reopens the directory through it. */
async function setMode(at: FileHandle, mode: number): Promise<void> {
  const directory = await open(handlePath(at), constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    await directory.chmod(mode)
  } finally {
    await directory.close()
  }
}

/** Opens exactly this name as an O_PATH handle; a symbolic link itself, not its target. */
export function openStep(path: string): Promise<FileHandle> {
  return open(path, step)
}

/** A path by which this process reaches exactly the file of the handle. */
export function handlePath(handle: FileHandle): string {
  return `/proc/self/fd/${handle.fd}`
}

function leadsOut(path: string): VolumeError {
  return new VolumeError('VOLUME_SETUP', `path ${JSON.stringify(path)} leads out of its volume`)
}
