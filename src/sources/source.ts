import type { SourceSnapshot } from '../pod/objects/document.ts'

/** Where desired pods come from. */
export interface Source {
  /**
   * Yields a full snapshot once the source has been read (or has failed to be), and whenever it
   * changes. Goes on until the signal is aborted, then resolves; it doesn't end otherwise.
   */
  run(onSnapshot: (snapshot: SourceSnapshot) => void, signal: AbortSignal): Promise<void>
}
