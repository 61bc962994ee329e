import type { SourceSnapshot } from '../pod/objects/document.ts'

/** Where desired pods come from. */
export interface Source {
  /**
   * Yields a full snapshot once the source has been read (or has failed to be), and whenever it
   * changes. Goes on until the signal is aborted, then resolves; it doesn't end otherwise.
   */
  run(onSnapshot: (snapshot: SourceSnapshot) => void, signal: AbortSignal): Promise<void>
}

/** How a source learns of changes: told by the file system, by reading or asking again and again, or by the server. */
export type SourceMode = 'watch' | 'poll' | 'push'

/** What is to be said of a source beside its snapshots. Times are wall milliseconds. */
export interface SourceReport {
  readonly mode: SourceMode
  /** Distinguishes what it gives: a hash of what was read last. */
  readonly hash?: string | undefined
  /** What the server calls it. */
  readonly etag?: string | undefined
  /** When it was read, or the server answered, last. */
  readonly answeredAtMs?: number | undefined
  /** Why it can't be read, and since when. */
  readonly failure?: { readonly message: string; readonly sinceMs: number } | undefined
}

/** A source that tells how it does. */
export interface ReportingSource extends Source {
  report(): SourceReport
}
