/** One file of GET /podd/v1/images/archives: what podd makes of a file in the directory of image archives. */
export interface ArchiveReport {
  readonly path: string
  /** `archive`, or `list` of images to pull. */
  readonly type: 'archive' | 'list'
  /** `pending`: not read, imported or pulled yet. `failed`: it cannot be, and the message says why. */
  readonly state: 'pending' | 'imported' | 'failed'
  readonly message?: string
  /** The images that it holds, as far as they are known. */
  readonly images: readonly string[]
}
