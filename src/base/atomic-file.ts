import {
  closeSync,
  constants,
  fchmod,
  fchmodSync,
  fsync,
  fsyncSync,
  open,
  openSync,
  renameSync,
  unlinkSync,
  write,
  writeFileSync,
} from 'node:fs'
import { readFile, readdir, rename, unlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { errorCode } from './errors.ts'
import { newUuid } from './random.ts'

export interface AtomicFileOptions {
  /** Permission bits of the file; 0600 where nothing is said. The process's umask doesn't matter. */
  readonly mode?: number
}

/** No umask of podd's takes any of it away. */
const ownerOnly = 0o600

/**
 * Replaces `path` by `data` so that a reader, and a machine that loses power, sees the old file or
 * the new one and never a part: temp file in the same directory, fsync, rename, fsync of the directory.
 * The directory must exist. On failure the old file stands, the temp file is gone, and the system's
 * error is thrown as it is (`code` ENOSPC, EROFS, …).
 *
 * Temp files bear names that start with a dot and end in `.tmp`; see `isAtomicFileTemp`.
 */
export async function writeFileAtomic(
  path: string,
  data: string | Uint8Array,
  options: AtomicFileOptions = {},
): Promise<void> {
  const mode = options.mode ?? ownerOnly
  const tempPath = join(dirname(path), `.${basename(path)}.${newUuid()}.tmp`)
  const file = await done<number>((callback) => open(tempPath, 'wx', mode, callback))
  try {
    try {
      if (mode !== ownerOnly) await done<void>((callback) => fchmod(file, mode, callback))
      await writeWhole(file, typeof data === 'string' ? Buffer.from(data) : data)
      await done<void>((callback) => fsync(file, callback))
    } finally {
      closeSync(file)
    }
    await rename(tempPath, path)
  } catch (error) {
    await unlink(tempPath).catch(() => undefined)
    throw error
  }
  await syncDirectory(dirname(path))
}

/** A file handle of `node:fs/promises` takes twice the CPU, which is a good part of a pod's start. */
function done<T>(begin: (callback: (error: Error | null, value: T) => void) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    begin((error, value) => {
      if (error === null) resolve(value)
      else reject(error)
    })
  })
}

async function writeWhole(file: number, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;)
    at += await done<number>((callback) => write(file, bytes, at, bytes.length - at, null, callback))
}

/** As `writeFileAtomic`, where nothing may happen in between. */
export function writeFileAtomicSync(path: string, data: string, options: AtomicFileOptions = {}): void {
  const mode = options.mode ?? ownerOnly
  const tempPath = join(dirname(path), `.${basename(path)}.${newUuid()}.tmp`)
  const file = openSync(tempPath, 'wx', mode)
  try {
    try {
      fchmodSync(file, mode)
      writeFileSync(file, data)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    renameSync(tempPath, path)
  } catch (error) {
    try {
      unlinkSync(tempPath)
    } catch {
      // It was renamed, or can't be removed: the error that stands is the one that is thrown.
    }
    throw error
  }
  const directory = openSync(dirname(path), constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    fsyncSync(directory)
  } catch (error) {
    // Some filesystems have no fsync for directories.
    if (errorCode(error) !== 'EINVAL') throw error
  } finally {
    closeSync(directory)
  }
}

/** Removes `path` so that the removal survives a power cut. A file that isn't there is fine. */
export async function removeFileDurably(path: string): Promise<void> {
  try {
    await unlink(path)
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return
    throw error
  }
  await syncDirectory(dirname(path))
}

/** The text of a file, or undefined when there is none; other failures are thrown. */
export async function readIfExists(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined
    throw error
  }
}

/** The suffix of files that were put aside because this podd can't read them. */
export const unreadableSuffix = '.unreadable'

/** Puts a file aside, in place of what was put aside of it before. Gives where it is now: on a disk that can't be written it stays. */
export async function putAside(path: string): Promise<string> {
  const aside = `${path}${unreadableSuffix}`
  return rename(path, aside).then(
    () => aside,
    () => path,
  )
}

/**
 * Removes the temp files that killed writers left beside `path`. Only for the file's one writer. A directory
 * that isn't there, or can't be written, is left as it is: temp files cost a little room and nothing else.
 */
export async function removeAtomicFileTemps(path: string): Promise<void> {
  const directory = dirname(path)
  const names = await readdir(directory).catch(() => [])
  const prefix = `.${basename(path)}.`
  for (const name of names) {
    if (!name.startsWith(prefix) || !isAtomicFileTemp(name)) continue
    await unlink(join(directory, name)).catch(() => undefined)
  }
}

/** Whether a name is one that an interrupted `writeFileAtomic` may have left behind. */
export function isAtomicFileTemp(name: string): boolean {
  return name.startsWith('.') && name.endsWith('.tmp')
}

/** Makes renames and removals in a directory survive a power cut. */
async function syncDirectory(path: string): Promise<void> {
  const directory = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    await done<void>((callback) => fsync(directory, callback))
  } catch (error) {
    // Some filesystems have no fsync for directories; there the rename itself is all there is.
    if (errorCode(error) !== 'EINVAL') throw error
  } finally {
    closeSync(directory)
  }
}
