import { createHash } from 'node:crypto'
import { close, constants, fstat, open, read } from 'node:fs'
import type { BigIntStats, Dirent } from 'node:fs'
import { lstat, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { callFile } from '../base/atomic-file.ts'
import { errorCode, mayPass, ifThere } from '../base/errors.ts'
import { maxSourceBytes } from '../pod/decode/decode-documents.ts'

/** The result of examining a file in the manifest directory without reading it. */
export type FileLook =
  | {
      readonly kind: 'file'
      /** Differs when the file was replaced, written or touched. */
      readonly fingerprint: string
      readonly sizeBytes: number
      readonly modifiedAtMs: number
      /** Who beside root can write it, in words. */
      readonly otherWriters: string | undefined
      /** The name is a symlink. */
      readonly isLink?: boolean
    }
  /** It exists and can't be read, for this reason. */
  | {
      readonly kind: 'unreadable'
      readonly fingerprint: string
      readonly reason: string
      /** The system's error, where it may go away by itself. */
      readonly error?: unknown
      readonly isLink?: boolean
    }
  | { readonly kind: 'missing' }

/** Looks at the file behind a name, following symlinks. Never throws. */
export async function lookAtFile(path: string): Promise<FileLook> {
  try {
    const stats = await lstat(path, { bigint: true })
    if (!stats.isSymbolicLink()) return describe(stats)
    return { ...describe(await stat(path, { bigint: true })), isLink: true }
  } catch (error) {
    const code = errorCode(error)
    if (code === 'ENOENT') return await describeMissing(path)
    if (code !== 'ELOOP') return unreadable(error)
    const reason = 'is a symlink that leads round in a circle'
    return { kind: 'unreadable', fingerprint: code, reason, isLink: true }
  }
}

/** Differs when the file was replaced, written or touched. */
export function fingerprintOf({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return `${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}`
}

function describe(stats: BigIntStats): Exclude<FileLook, { readonly kind: 'missing' }> {
  const fingerprint = fingerprintOf(stats)
  if (!stats.isFile()) {
    const reason = stats.isDirectory() ? 'is a directory: what is in it is not read' : 'is not a regular file'
    return { kind: 'unreadable', fingerprint, reason }
  }
  if (stats.size > BigInt(maxSourceBytes)) {
    return { kind: 'unreadable', fingerprint, reason: `is larger than ${maxSourceBytes / 2 ** 20} MiB` }
  }
  return {
    kind: 'file',
    fingerprint,
    sizeBytes: Number(stats.size),
    modifiedAtMs: Number(stats.mtimeNs / 1_000_000n),
    otherWriters: describeOtherWriters(stats),
  }
}

function unreadable(error: unknown): FileLook {
  const code = errorCode(error)
  const look = { kind: 'unreadable' as const, fingerprint: String(code), reason: `cannot be read: ${code}` }
  return mayPass(error) ? { ...look, error } : look
}

/** In the place of a fingerprint, of a link whose target is missing. */
export const danglingMark = 'dangling'

async function describeMissing(path: string): Promise<FileLook> {
  try {
    await lstat(path)
  } catch (error) {
    const code = errorCode(error)
    // A file is missing only where the system reports that it doesn't exist.
    if (code === 'ENOENT' || code === 'ENOTDIR') return { kind: 'missing' }
    return unreadable(error)
  }
  const reason = 'is a symlink to a file that is missing'
  return { kind: 'unreadable', fingerprint: danglingMark, reason, isLink: true }
}

export interface FileContent {
  readonly bytes: Uint8Array
  readonly hash: string
}

/**
 * The content of a file that looked like `fingerprint`, or undefined where it looked otherwise
 * before or after it was read. Throws what the system throws.
 */
export async function readUnchanged(path: string, fingerprint: string): Promise<FileContent | undefined> {
  // A FIFO put in the file's place must not make this wait.
  const flags = constants.O_RDONLY | constants.O_NONBLOCK
  const file = await callFile<number>((callback) => open(path, flags, callback))
  try {
    const before = describe(
      await callFile<BigIntStats>((callback) => fstat(file, { bigint: true }, callback)),
    )
    if (before.kind !== 'file' || before.fingerprint !== fingerprint) return undefined
    const bytes = await readWhole(file, before.sizeBytes)
    const after = await lookAtFile(path)
    if (after.kind !== 'file' || after.fingerprint !== fingerprint) return undefined
    return { bytes, hash: createHash('sha256').update(bytes).digest('hex') }
  } finally {
    await callFile<void>((callback) => close(file, callback))
  }
}

/** Of a file of this size. What a writer that goes on adds meanwhile isn't read. */
async function readWhole(file: number, sizeBytes: number): Promise<Uint8Array> {
  const bytes = Buffer.allocUnsafeSlow(sizeBytes)
  let at = 0
  while (at < sizeBytes) {
    const count = await callFile<number>((callback) => read(file, bytes, at, sizeBytes - at, null, callback))
    if (count === 0) break
    at += count
  }
  return bytes.subarray(0, at)
}

/** Deeper subdirectories are not read. */
const maxDepth = 32

/** What is found in a directory beside its manifests. */
export interface ListingNotes {
  /** A subdirectory that is read. */
  readonly onDirectory?: (name: string) => void
  /** A file that isn't read because of its name. */
  readonly onPassedOver?: (name: string) => void
  /** A file whose name isn't UTF-8, so that it can't be read; with `\\xff` for what is none. */
  readonly onUnreadableName?: (name: string) => void
}

/**
 * The manifests of a directory by their names, those in subdirectories (`sub/a.yaml`) only where `recursive`. A link to a
 * directory is not followed. Throws what the system throws of the directory itself.
 */
export async function listManifests(
  directory: string,
  recursive: boolean,
  notes: ListingNotes = {},
): Promise<readonly string[]> {
  return await listTree(directory, { prefix: '', depth: recursive ? maxDepth : 0, notes })
}

interface Subtree {
  /** The name of the subdirectory with a slash at its end. */
  readonly prefix: string
  readonly depth: number
  readonly notes: ListingNotes
}

async function listTree(directory: string, subtree: Subtree): Promise<readonly string[]> {
  const { prefix, depth, notes } = subtree
  const found: string[] = []
  const entries: Dirent<Buffer>[] = await readdir(join(directory, prefix), {
    withFileTypes: true,
    encoding: 'buffer',
  })
  for (const entry of entries) {
    const own = entry.name.toString('utf8')
    const name = `${prefix}${own}`
    if (!Buffer.from(own).equals(entry.name)) {
      if (!isHiddenName(own)) notes.onUnreadableName?.(`${prefix}${showBytes(entry.name)}`)
      continue
    }
    if (!entry.isDirectory()) {
      if (isManifestName(own)) found.push(name)
      else if (entry.isFile() && isPassedOver(own)) notes.onPassedOver?.(name)
      continue
    }
    // Of a directory with such a name it is told that it is none.
    if (depth === 0 && isManifestName(own)) found.push(name)
    if (isHiddenName(own) || depth === 0) continue
    notes.onDirectory?.(name)
    const below = listTree(directory, { ...subtree, prefix: `${name}/`, depth: depth - 1 })
    for (const path of (await ifThere(below)) ?? []) found.push(path)
  }
  return found
}

/** Each byte that isn't ASCII as `\\xff`: a name with such bytes can't be told apart otherwise. */
function showBytes(name: Buffer): string {
  return [...name]
    .map((byte) =>
      byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, '0')}`,
    )
    .join('')
}

/**
 * Whether a file of this name in the manifest directory is read: `.yaml`, `.yml` and `.json`, in capitals too, but never
 * dotfiles nor editors' temporary files (`x.yaml~`, `#x.yaml#`, `.x.yaml.swp`, `4913`).
 */
export function isManifestName(name: string): boolean {
  return /\.(?:ya?ml|json)$/i.test(name) && !isHiddenName(name)
}

/** The same for a path below the manifest directory, `sub/x.yaml`: hidden directories are not read. */
export function isManifestPath(path: string): boolean {
  const names = path.split('/')
  return isManifestName(names.at(-1) ?? '') && !names.some((name) => isHiddenName(name))
}

export function isHiddenName(name: string): boolean {
  return /^[.#~]/.test(name)
}

/** Whether whoever put a file of this name there may take it for a manifest: it isn't read, and no program made it for a moment. */
function isPassedOver(name: string): boolean {
  const isTemporary = /(?:~|\.(?:sw[a-p]|tmp|temp|part|new|bak|old|orig|dpkg-\w+|rpm\w+))$|^\d+$/i.test(name)
  return !isManifestName(name) && !isHiddenName(name) && !isTemporary
}

/**
 * Who beside root (and the user that podd runs as) can write a file or a directory, as text; undefined where there is
 * no such user. Access control lists are not considered.
 */
export function describeOtherWriters({
  uid,
  gid,
  mode,
}: Pick<BigIntStats, 'uid' | 'gid' | 'mode'>): string | undefined {
  const owner = isTrusted(uid, process.geteuid?.()) ? undefined : `its owner (uid ${uid})`
  const group =
    (mode & 0o020n) === 0n || isTrusted(gid, process.getegid?.()) ? undefined : `its group (gid ${gid})`
  const all = (mode & 0o002n) === 0n ? undefined : 'everyone'
  const writers = all === undefined ? [owner, group].filter((who) => who !== undefined) : [all]
  return writers.length === 0 ? undefined : writers.join(' and ')
}

function isTrusted(id: bigint, own: number | undefined): boolean {
  return id === 0n || (own !== undefined && id === BigInt(own))
}
