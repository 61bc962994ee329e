import { writeOutLayers } from './import-image.ts'
import type { ImageImportTarget } from './import-image.ts'

/**
 * Writes what containerd unpacked to the disk: one sync at a time, and one further sync for all calls made meanwhile.
 */
export class WriteOuts {
  readonly #write: (target: ImageImportTarget) => Promise<void>
  #running: Promise<void> | undefined
  #next: Promise<void> | undefined

  constructor(write: (target: ImageImportTarget) => Promise<void> = writeOutLayers) {
    this.#write = write
  }

  /** Resolves when all that was unpacked before this call is on the disk. Throws HostCommandError. */
  run(target: ImageImportTarget): Promise<void> {
    if (this.#running === undefined) return this.#begin(target)
    this.#next ??= this.#running
      // Its own callers get its error.
      .catch(() => undefined)
      .then(() => {
        this.#next = undefined
        return this.#begin(target)
      })
    return this.#next
  }

  #begin(target: ImageImportTarget): Promise<void> {
    const work = this.#write(target).finally(() => {
      if (this.#running === work) this.#running = undefined
    })
    this.#running = work
    return work
  }
}
