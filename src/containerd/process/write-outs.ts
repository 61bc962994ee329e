import type { Logger } from '../../base/logger.ts'
import { writeOutLayers } from './import-image.ts'
import type { ImageImportTarget } from './import-image.ts'

/** Writes what containerd unpacked to the disk: one turn at a time, and one more for all that asked meanwhile. */
export class WriteOuts {
  readonly #logger: Logger
  #isBusy = false
  #next: ImageImportTarget | undefined

  constructor(logger: Logger) {
    this.#logger = logger
  }

  /** Never throws; nobody waits for it. */
  ask(target: ImageImportTarget): void {
    this.#next = target
    if (!this.#isBusy) void this.#work()
  }

  async #work(): Promise<void> {
    this.#isBusy = true
    for (let target = this.#next; target !== undefined; target = this.#next) {
      this.#next = undefined
      await writeOutLayers(target).catch((error: unknown) =>
        this.#logger.warn({ err: error }, 'a pulled image may be lost in a power cut'),
      )
    }
    this.#isBusy = false
  }
}
