import type { FileLook } from '../read-manifest-file.ts'

/** Quiet time after which a file that is written in place counts as written. */
export const settleMs = 5
/** The same for one that looks half-written. */
export const suspiciousMs = 400

/**
 * How long the directory has to be quiet before a file is taken that drops objects: they may be moving to another file,
 * as when two files are swapped by renames.
 */
export const movingMs = 250

/** The facts by which a file in the directory counts as whole. */
export interface FileFacts {
  readonly sizeBytes: number
  /** False where it came by a rename, which makes it whole at once. */
  readonly isWrittenInPlace: boolean
  /** No version of it was taken before. */
  readonly isNew: boolean
  /** Since its last change. */
  readonly quietMs: number
  /** Since the last change of any name in the directory. */
  readonly directoryQuietMs: number
  readonly content?: {
    readonly hasErrors: boolean
    readonly endsCleanly: boolean
    /** See isBraced. */
    readonly isBraced: boolean
    /** Fewer bytes, or fewer objects, than the version before. */
    readonly givesLess: boolean
    /** An object of the version before is no longer in any file. */
    readonly dropsObjects: boolean
  }
}

/**
 * For how many milliseconds to wait before the file is taken; 0 for now. Node learns of writes from Linux but not of
 * closes, so a file that is written in place counts as whole after a short quiet time, and after a longer one when it
 * is empty, doesn't parse, ends in the middle of a line or at the end of a page, or gives less than before: as a file
 * does whose writer stopped halfway. A new file with JSON is taken as soon as it parses: no part of an object does, and
 * nothing of an earlier version can be in it. One that drops objects waits until nothing moves in the directory.
 */
export function computeSettleWait(facts: FileFacts): number {
  const movingWaitMs = facts.content?.dropsObjects === true ? movingMs - facts.directoryQuietMs : 0
  return Math.max(0, movingWaitMs, wholeWait(facts))
}

/** How long to wait until the file counts as whole. */
function wholeWait({ sizeBytes, isWrittenInPlace, isNew, quietMs, content }: FileFacts): number {
  if (!isWrittenInPlace && sizeBytes > 0) return 0
  if (isNew && content?.isBraced === true && !content.hasErrors) return 0
  const isSuspicious =
    sizeBytes === 0 ||
    (content !== undefined &&
      (content.hasErrors || content.givesLess || !content.endsCleanly || sizeBytes % 4096 === 0))
  return (isSuspicious ? suspiciousMs : settleMs) - quietMs
}

/** Milliseconds since a file changed, by its own timestamps, up to a bound. */
export function ageMs(look: FileLook, wallMs: number): number {
  if (look.kind !== 'file') return 0
  return Math.min(Math.max(wallMs - look.modifiedAtMs, 0), suspiciousMs)
}

/** Whether the last byte is one with which a complete manifest ends: a newline, or the brace of a JSON object. */
export function endsCleanly(bytes: Uint8Array): boolean {
  const last = bytes.at(-1)
  return last === 0x0a || last === 0x7d
}

/** Whether a text begins and ends as a JSON object, but for spaces. */
export function isBraced(bytes: Uint8Array): boolean {
  const isSpace = (byte: number): boolean => byte === 0x20 || (byte >= 0x09 && byte <= 0x0d)
  const first = bytes.find((byte) => !isSpace(byte))
  return first === 0x7b && bytes.findLast((byte) => !isSpace(byte)) === 0x7d
}
