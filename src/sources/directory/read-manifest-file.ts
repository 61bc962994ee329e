import { createHash } from 'node:crypto'
import type { BigIntStats } from 'node:fs'
import { constants } from 'node:fs'
import { lstat, open, stat } from 'node:fs/promises'
import { errorCode, mayPass } from '../../base/errors.ts'
import { readRest } from '../../base/read-bounded.ts'
import { maxSourceBytes } from '../../pod/decode/decode-documents.ts'
import { describeOtherWriters } from './other-writers.ts'

/** What a file in the manifest directory looks like from outside. */
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
  /** There is something, and it can't be read, for this reason. */
  | {
      readonly kind: 'unreadable'
      readonly fingerprint: string
      readonly reason: string
      /** What the system said where it may say something else later. */
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
    const reason = stats.isDirectory()
      ? 'is a directory: subdirectories of the manifest directory are not read'
      : 'is not a regular file'
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

async function describeMissing(path: string): Promise<FileLook> {
  try {
    await lstat(path)
  } catch (error) {
    const code = errorCode(error)
    // Only the system's word that there is none makes a file missing.
    if (code === 'ENOENT' || code === 'ENOTDIR') return { kind: 'missing' }
    return unreadable(error)
  }
  const reason = 'is a symlink to a file that is missing'
  return { kind: 'unreadable', fingerprint: 'dangling', reason, isLink: true }
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
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const before = describe(await file.stat({ bigint: true }))
    if (before.kind !== 'file' || before.fingerprint !== fingerprint) return undefined
    // A writer that goes on meanwhile adds nothing to what is read.
    const bytes = await readRest(file, maxSourceBytes)
    const after = await lookAtFile(path)
    if (after.kind !== 'file' || after.fingerprint !== fingerprint) return undefined
    return { bytes, hash: createHash('sha256').update(bytes).digest('hex') }
  } finally {
    await file.close()
  }
}
