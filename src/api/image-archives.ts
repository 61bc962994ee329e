/** One file of GET /podd/v1/images/archives: the state of a file in the directory of image archives. */
export interface ArchiveReport {
  readonly path: string
  /** `archive`, or `list` of images to pull. */
  readonly type: 'archive' | 'list'
  /** `pending`: not read, imported or pulled yet. `failed`: it cannot be, and the message says why. */
  readonly state: 'pending' | 'imported' | 'failed'
  readonly message?: string
  /** Its images, as far as known. */
  readonly images: readonly string[]
}
