import { createHash } from 'node:crypto'
import {
  closeSync,
  constants,
  fchmod,
  fchmodSync,
  fdatasync,
  fstatSync,
  fsync,
  fsyncSync,
  open,
  openSync,
  renameSync,
  unlinkSync,
  write,
  writeFileSync,
} from 'node:fs'
import { access, mkdir, readdir, readFile, rename, rm, stat, unlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { errorCode, ifThere } from './errors.ts'
import { newUuid } from './random.ts'

/** No umask of podd's takes any of it away. */
const ownerOnly = 0o600

/**
 * Replaces `path` by `data` so that readers see the old file or the new one and never a part, also after a power cut:
 * temp file in the same directory, fsync, rename, fsync of the directory. The directory must exist. On failure the old
 * file stands, the temp file is gone, and the system's error is thrown (`code` ENOSPC, EROFS, …), about the file itself:
 * a temp file has another name each time, and what fails repeatedly is told once.
 *
 * The names of temp files start with a dot and end in `.tmp`; see `isAtomicFileTemp`.
 * @param mode the file's permission bits; the process's umask doesn't matter
 */
export async function writeFileAtomic(
  path: string,
  data: string | Uint8Array,
  mode = ownerOnly,
): Promise<void> {
  const tempPath = newTempPath(path)
  try {
    const file = await callFile<number>((callback) => open(tempPath, 'wx', mode, callback))
    try {
      if (mode !== ownerOnly) await callFile<void>((callback) => fchmod(file, mode, callback))
      await writeWhole(file, typeof data === 'string' ? Buffer.from(data) : data)
      await callFile<void>((callback) => fsync(file, callback))
    } finally {
      closeSync(file)
    }
    await rename(tempPath, path)
  } catch (error) {
    await tryRemove(tempPath)
    throw aboutFile(error, tempPath, path)
  }
  await syncDirectory(dirname(path))
}

/**
 * The system's error about a temp file, as if it were about what that was to become. One about an open file (`ENOSPC: no
 * space left on device, write`) names none of itself.
 */
export function aboutFile(error: unknown, tempPath: string, path: string): unknown {
  if (!(error instanceof Error)) return error
  const isNamed = error.message.includes(tempPath) || !('syscall' in error)
  error.message = isNamed ? error.message.replaceAll(tempPath, path) : `${error.message} '${path}'`
  return error
}

/** In bytes: Linux takes names of 255, and that of a temp file has two dots, a UUID and `.tmp` more. */
const longestInTemp = 255 - 2 - 36 - 4

function newTempPath(path: string): string {
  return join(dirname(path), `${tempPrefix(path)}${newUuid()}.tmp`)
}

/** What the names of a file's temp files begin with: its name, or the hash of a longer one. */
function tempPrefix(path: string): string {
  const name = basename(path)
  const isLong = Buffer.byteLength(name) > longestInTemp
  return `.${isLong ? createHash('sha256').update(name).digest('hex') : name}.`
}

async function writeWhole(file: number, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;)
    at += await callFile<number>((callback) => write(file, bytes, at, bytes.length - at, null, callback))
}

/** As `writeFileAtomic`, but synchronous. */
export function writeFileAtomicSync(path: string, data: string, mode = ownerOnly): void {
  const tempPath = newTempPath(path)
  try {
    const file = openSync(tempPath, 'wx', mode)
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
      // It was never made, was renamed, or can't be removed: the original error is thrown.
    }
    throw aboutFile(error, tempPath, path)
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

/**
 * Adds `data` to the end of a file of `sizeBytes` bytes; resolves when it is on disk, with whether it was added: not where
 * there is no file, or one of another size. A power cut in between, and a failure, may leave a part of it. Throws the
 * system's error.
 */
export async function appendFileDurably(
  path: string,
  data: Uint8Array,
  { sizeBytes }: { readonly sizeBytes: number },
): Promise<boolean> {
  const flags = constants.O_WRONLY | constants.O_APPEND
  const file = await ifThere(callFile<number>((callback) => open(path, flags, callback)))
  if (file === undefined) return false
  try {
    if (fstatSync(file).size !== sizeBytes) return false
    await writeWhole(file, data)
    await callFile<void>((callback) => fdatasync(file, callback))
    return true
  } finally {
    closeSync(file)
  }
}

/** Removes `path` so that the removal survives a power cut. Does nothing where the file doesn't exist. */
export async function removeFileDurably(path: string): Promise<void> {
  try {
    await unlink(path)
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return
    throw error
  }
  await syncDirectory(dirname(path))
}

/**
 * Removes a directory with all that is in it, or a file; does nothing where there is none. Throws the system's error of what
 * can't be removed: Node takes a file that it can't remove for a directory, and says that this can't be listed.
 */
export async function removeTree(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true })
  } catch (error) {
    const at = error instanceof Error && 'path' in error ? error.path : undefined
    if (errorCode(error) === 'ENOTDIR' && typeof at === 'string') await unlink(at)
    throw error
  }
}

/** The text of a file, or undefined when there is none; other failures are thrown. */
export async function readIfExists(path: string): Promise<string | undefined> {
  return await ifThere(readFile(path, 'utf8'))
}

/** The suffix of files that were put aside because this podd can't read them. */
export const unreadableSuffix = '.unreadable'

/**
 * Puts a file aside, replacing an earlier one that was put aside. Returns its path: on a disk that can't be written it
 * stays in place.
 */
export async function putAside(path: string): Promise<string> {
  const aside = `${path}${unreadableSuffix}`
  return rename(path, aside).then(
    () => aside,
    // The caller reports the file as unreadable, with the path that this returns.
    () => path,
  )
}

/** Removes a file; where it can't be removed, it stays. Never rejects. */
export async function tryRemove(path: string): Promise<void> {
  // Callers remove what only costs room, and report themselves why the disk can't be written.
  await unlink(path).catch(() => undefined)
}

/**
 * Removes the temp files that killed writers left beside `path`. Only for the file's one writer. Does nothing where the
 * directory doesn't exist or can't be written: temp files only cost a little room.
 */
export async function removeAtomicFileTemps(path: string): Promise<void> {
  const directory = dirname(path)
  // A directory that can't be read fails the write that follows, which reports it.
  const names = await readdir(directory).catch(() => [])
  const prefix = tempPrefix(path)
  for (const name of names) {
    if (!name.startsWith(prefix) || !isAtomicFileTemp(name)) continue
    await tryRemove(join(directory, name))
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
    await callFile<void>((callback) => fsync(directory, callback))
  } catch (error) {
    // Some filesystems have no fsync for directories; there the rename has to do.
    if (errorCode(error) !== 'EINVAL') throw error
  } finally {
    closeSync(directory)
  }
}

/**
 * Calls a function of `node:fs` that takes a callback. A file handle of `node:fs/promises` takes twice the CPU, which is a
 * good part of a pod's start. Rejects with the system's error.
 */
export function callFile<T>(begin: (callback: (error: Error | null, value: T) => void) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    begin((error, value) => {
      if (error === null) resolve(value)
      else reject(error)
    })
  })
}

/**
 * Creates a directory and its parents; it may exist. For user-given paths: below `/proc` and the like, where mkdir
 * always fails with ENOENT, Node's own recursion doesn't end.
 * @throws the system's error of the directory that can't be made; ENOTDIR where another file is in its place
 */
export async function makeDirectory(path: string, mode: number): Promise<void> {
  const parent = dirname(path)
  try {
    await makeOne(path, mode)
  } catch (error) {
    if (errorCode(error) !== 'ENOENT' || parent === path) throw error
    await makeDirectory(parent, mode)
    await makeOne(path, mode)
  }
}

/**
 * Calls `write`, which writes into the directory, and once more where the directory was missing, which is made then. To look
 * for it before each write costs two trips to a thread.
 * @param mayVanish what is written need not outlast a power cut, so that the directory need not
 * @throws what `write` and `makeDirectory` throw
 */
export async function writeInto(
  directory: string,
  mode: number,
  write: () => Promise<void>,
  mayVanish = false,
): Promise<void> {
  try {
    await write()
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error
    await makeDirectory(directory, mode)
    if (!mayVanish) await syncDirectory(dirname(directory))
    await write()
  }
}

/** Whether there is something at this path; true where that can't be known. */
export async function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    (error: unknown) => errorCode(error) !== 'ENOENT' && errorCode(error) !== 'ENOTDIR',
  )
}

async function makeOne(path: string, mode: number): Promise<void> {
  try {
    await mkdir(path, { mode })
  } catch (error) {
    if (errorCode(error) === 'ENOENT') throw error
    const isDirectory = await stat(path).then(
      (stats) => stats.isDirectory(),
      // The error of mkdir is thrown instead.
      () => false,
    )
    if (isDirectory) return
    if (errorCode(error) !== 'EEXIST') throw error
    throw Object.assign(new Error(`ENOTDIR: not a directory, mkdir '${path}'`), { code: 'ENOTDIR' })
  }
}
