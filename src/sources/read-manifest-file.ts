import { createHash } from 'node:crypto'
import type { BigIntStats } from 'node:fs'
import { close, constants, fstat, open, read } from 'node:fs'
import { lstat, stat } from 'node:fs/promises'
import { callFile } from '../base/atomic-file.ts'
import { errorCode, mayPass } from '../base/errors.ts'
import { maxSourceBytes } from '../pod/decode/decode-documents.ts'
import { describeOtherWriters } from './other-writers.ts'

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
