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
