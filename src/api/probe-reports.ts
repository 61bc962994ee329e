/** One probe of one container and what came of it since podd first saw the container. Times are RFC 3339 text. */
export interface ProbeReportObject {
  readonly container: string
  readonly probe: 'liveness' | 'readiness' | 'startup'
  /** What stands: a result that has reached its threshold. */
  readonly result: 'success' | 'failure' | 'unknown'
  /** How often each result occurred. `repeated`: podd itself was too busy or the runtime silent, and the probe was sent again. */
  readonly counts: {
    readonly success: number
    readonly failure: number
    readonly unknown: number
    readonly repeated: number
  }
  /** The newest, in the words of its event; it may be of a container before the one that runs. */
  readonly lastFailure?: { readonly time: string; readonly message: string }
}
