/** An event that is a warning. */
export interface ShownError {
  /** When it last happened. */
  readonly time: string
  /** `Pod/web`, `Node`. */
  readonly object: string
  readonly reason: string
  readonly message: string
  readonly count: number
}
