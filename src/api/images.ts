import type { StatusObject } from './routes.ts'

/** One line of POST /podd/v1/images/pull; the last one is `pulled` or `failed`. */
export type PullUpdate =
  | {
      readonly kind: 'progress'
      readonly doneBytes: number
      /** Of the whole image, as far as that is known. */
      readonly totalBytes?: number
    }
  | { readonly kind: 'pulled'; readonly id: string; readonly sizeBytes: number }
  | { readonly kind: 'failed'; readonly status: StatusObject }

/** POST /podd/v1/images/remove. */
export interface RemovedImage {
  readonly id: string
  /** Its tags and digests. */
  readonly names: readonly string[]
  /** How many more bytes were available on the disk afterwards. */
  readonly freedBytes: number
}

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

/** POST /podd/v1/gc: what was removed, or would be, and why the rest is kept. */
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
    /** How many more bytes were available afterwards; in a dry run the sum of the sizes. */
    readonly freedBytes: number
  }
  /** Exited containers, stopped sandboxes, and what is left on the host of pods that no longer exist. */
  readonly items: readonly GarbageItem[]
}

/** Something other than an image that is removed. */
export interface GarbageItem {
  /** `container`, `sandbox`, or a kind of orphan: `volumes`, `logs`, `log-link`, `cgroup`, `network-namespace` … */
  readonly kind: string
  /** The runtime's id, or the path. */
  readonly id: string
  /** Its name in messages. */
  readonly name: string
  readonly reason: string
  readonly message: string
  /** Where that is known. */
  readonly sizeBytes?: number
  /** `planned`: of a dry run. `waiting`: a call in flight may still own it; it is removed by a later collection. */
  readonly outcome: 'planned' | 'removed' | 'failed' | 'waiting'
}

export interface ImageVerdict {
  readonly id: string
  /** Its tags and digests. */
  readonly names: readonly string[]
  /** As the runtime counts it: the download size, including layers shared with other images. */
  readonly sizeBytes: number
  /** `unused`; `in-use`, `pinned`, `young`; `failed`. */
  readonly reason: string
  readonly message: string
}
