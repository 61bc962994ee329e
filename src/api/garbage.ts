/** POST /podd/v1/gc: what was removed, or would be, and why the rest stays. */
export interface GarbageReport {
  readonly dryRun: boolean
  readonly images: {
    /** The disk that holds them, before anything was removed. */
    readonly disk: {
      readonly path: string
      readonly capacityBytes: number
      readonly availableBytes: number
      readonly usedPercent: number
    }
    /** In the order in which they were removed. */
    readonly removed: readonly ImageVerdict[]
    /** What should have been removed and could not; the message says why. */
    readonly failed: readonly ImageVerdict[]
    readonly kept: readonly ImageVerdict[]
    /** By how much more was available afterwards; in a dry run the sum of the sizes. */
    readonly freedBytes: number
  }
}

export interface ImageVerdict {
  readonly id: string
  /** Its tags and digests. */
  readonly names: readonly string[]
  /** As the runtime counts it: what was downloaded, layers shared with other images too. */
  readonly sizeBytes: number
  /** `unused`; `in-use`, `pinned`, `young`; `failed`. */
  readonly reason: string
  readonly message: string
}
