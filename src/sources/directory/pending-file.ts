import type { ReadFailure } from './read-failure.ts'
import type { FileLook } from './read-manifest-file.ts'
import type { FileContent } from './taken-files.ts'

export interface ReadContent extends FileContent {
  readonly endsCleanly: boolean
}

/** A file that changed and isn't taken yet. */
export interface PendingFile {
  readonly look: Exclude<FileLook, { readonly kind: 'missing' }>
  readonly isWrittenInPlace: boolean
  /** Monotonic time of its last change. */
  readonly changedAtMs: number
  /** The system kept it from being read or decoded, which says nothing about what it holds. */
  readonly failure?: ReadFailure
  /** What it holds, once it was read. */
  readonly read?: ReadContent & { readonly dropsObjects: boolean }
}

export function sizeOf(look: PendingFile['look']): number {
  return look.kind === 'file' ? look.sizeBytes : 0
}
