/** One probe of one container, with its results since podd first saw the container. Times are RFC 3339 text. */
export interface ProbeReportObject {
  readonly container: string
  readonly probe: 'liveness' | 'readiness' | 'startup'
  /** The current verdict: a result that has reached its threshold. */
  readonly result: 'success' | 'failure' | 'unknown'
  /** How often each result occurred. `repeated`: podd itself was too busy or the runtime silent, and the probe was sent again. */
  readonly counts: {
    readonly success: number
    readonly failure: number
    readonly unknown: number
    readonly repeated: number
  }
  /** The newest failure, with its event's message; it may be of an earlier container. */
  readonly lastFailure?: { readonly time: string; readonly message: string }
}
