import type { ReadFailure } from './read-failure.ts'
import type { FileLook } from '../read-manifest-file.ts'
import type { FileContent } from './taken-files.ts'

export interface ReadContent extends FileContent {
  readonly endsCleanly: boolean
  /** See isBraced. */
  readonly isBraced: boolean
}

/** A file that changed and isn't taken yet. */
export interface PendingFile {
  readonly look: Exclude<FileLook, { readonly kind: 'missing' }>
  readonly isWrittenInPlace: boolean
  /** Monotonic time of its last change. */
  readonly changedAtMs: number
  /** Why the system could not read or decode it, whatever its content. */
  readonly failure?: ReadFailure
  /** Its content, once it was read. */
  readonly read?: ReadContent & {
    readonly dropsObjects: boolean
    /** It was read before the file was quiet: whether it is still the same has to be seen before it is taken. */
    readonly isEarly: boolean
  }
}

export function sizeOf(look: PendingFile['look']): number {
  return look.kind === 'file' ? look.sizeBytes : 0
}
