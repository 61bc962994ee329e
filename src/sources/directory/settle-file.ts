import type { FileLook } from './read-manifest-file.ts'

/** Quiet time after which a file that is written in place counts as written. */
export const settleMs = 5
/** The same for one that looks half-written. */
export const suspiciousMs = 400

/**
 * How long the directory has to be quiet before a file is taken that no longer gives what it gave: the object may be on its
 * way to another file, as when two files are swapped by renames.
 */
export const movingMs = 250

/** What tells whether a file in the directory is whole. */
export interface FileFacts {
  readonly sizeBytes: number
  /** False where it came by a rename, which makes it whole at once. */
  readonly isWrittenInPlace: boolean
  /** Since its last change. */
  readonly quietMs: number
  /** Since the last change of any name in the directory. */
  readonly directoryQuietMs: number
  readonly content?: {
    readonly hasErrors: boolean
    readonly endsCleanly: boolean
    /** Fewer bytes, or fewer objects, than the version before. */
    readonly givesLess: boolean
    /** An object of the version before is in no file any more. */
    readonly dropsObjects: boolean
  }
}

/**
 * How long to wait yet before the file is taken as it stands: 0 is now. Linux tells Node of writes but
 * not of closes, so a file that is written in place counts as whole after a short quiet time, and after
 * a longer one when it is empty, doesn't parse, ends in the middle of a line or at the end of a page,
 * or gives less than before: as a file does whose writer stopped halfway. One that drops objects waits until
 * nothing moves in the directory.
 */
export function computeSettleWait(facts: FileFacts): number {
  const movingWaitMs = facts.content?.dropsObjects === true ? movingMs - facts.directoryQuietMs : 0
  return Math.max(0, movingWaitMs, wholeWait(facts))
}

/** How long to wait until the file counts as whole. */
function wholeWait({ sizeBytes, isWrittenInPlace, quietMs, content }: FileFacts): number {
  if (!isWrittenInPlace && sizeBytes > 0) return 0
  const isSuspicious =
    sizeBytes === 0 ||
    (content !== undefined &&
      (content.hasErrors || content.givesLess || !content.endsCleanly || sizeBytes % 4096 === 0))
  return (isSuspicious ? suspiciousMs : settleMs) - quietMs
}

/** Milliseconds since a file changed, by its own word, as far as that matters. */
export function ageMs(look: FileLook, wallMs: number): number {
  if (look.kind !== 'file') return 0
  return Math.min(Math.max(wallMs - look.modifiedAtMs, 0), suspiciousMs)
}

/** Whether the last byte is one that a whole manifest ends in: a newline, or the brace of a JSON object. */
export function endsCleanly(bytes: Uint8Array): boolean {
  const last = bytes.at(-1)
  return last === 0x0a || last === 0x7d
}
