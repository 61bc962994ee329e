import type { SourceSnapshot } from '../pod/objects/document.ts'

/** A source of desired pods. */
export interface Source {
  /**
   * Yields a full snapshot once the source was read (or reading it failed), and after each change. Resolves only when
   * the signal is aborted.
   */
  run(onSnapshot: (snapshot: SourceSnapshot) => void, signal: AbortSignal): Promise<void>
}

/** How a source learns of changes: from the file system's events, by polling, or from the server. */
export type SourceMode = 'watch' | 'poll' | 'push'

/** The state of a source beside its snapshots. Times are wall milliseconds. */
export interface SourceReport {
  readonly mode: SourceMode
  /** A hash of the content last read. */
  readonly hash?: string | undefined
  /** The server's ETag. */
  readonly etag?: string | undefined
  /** When it was last read, or the server last answered. */
  readonly answeredAtMs?: number | undefined
  /** Why it can't be read, and since when. */
  readonly failure?: { readonly message: string; readonly sinceMs: number } | undefined
}

/** A source that reports its state. */
export interface ReportingSource extends Source {
  report(): SourceReport
}
