import type { Logger } from '../../base/logger.ts'
import { selectKept } from '../../decide/node/plan-image-archives.ts'
import { normalizeImageName } from '../../pod/values/image-name.ts'
import type { ArchiveRecords } from './archive-records.ts'

export interface ArchivePinsHost {
  /** Why the runtime pins nothing; undefined where it does. */
  readonly unsupported: string | undefined
  readonly pin: (image: string, pinned: boolean) => Promise<void>
  /** Complete names. */
  readonly pinnedImages: () => Promise<ReadonlySet<string>>
}

/** The pins of images that archives and lists hold, apart from those that users have set. */
export class ArchivePins {
  readonly #host: ArchivePinsHost
  readonly #records: ArchiveRecords
  readonly #logger: Logger
  /** Pinned for a file, which may not be on record yet. */
  readonly #own = new Set<string>()
  readonly #users = new Set<string>()

  constructor(options: {
    readonly host: ArchivePinsHost
    readonly records: ArchiveRecords
    readonly logger: Logger
  }) {
    this.#host = options.host
    this.#records = options.records
    this.#logger = options.logger
  }

  /**
   * The pinned names; read them before an import, which removes the pins of images that it replaces. Throws the host's
   * errors.
   */
  async list(): Promise<ReadonlySet<string>> {
    return this.#host.unsupported === undefined ? this.#host.pinnedImages() : new Set()
  }

  /** Throws the host's errors. @param before what was pinned before the import */
  async pin(image: string, before: ReadonlySet<string>): Promise<void> {
    if (this.#host.unsupported !== undefined) return
    await this.#host.pin(image, true)
    const name = normalizeImageName(image)
    if (!before.has(name)) this.#own.add(name)
  }

  /** The images of a file that stay pinned when it is gone. */
  kept(images: readonly string[], before: ReadonlySet<string>): readonly string[] {
    const pinned = new Set([...before].filter((image) => !this.#own.has(image)))
    const kept = new Set(selectKept(images, pinned, this.#records.all))
    return images.filter((image) => kept.has(image) || this.#users.has(image))
  }

  /** A user has pinned or unpinned these images. Never throws. */
  async noteUser(images: readonly string[], pinned: boolean): Promise<void> {
    for (const image of images) {
      this.#own.delete(image)
      if (pinned) this.#users.add(image)
      else this.#users.delete(image)
    }
    await this.#records.setKept(images, pinned)
  }

  /** Unpins images; one that is gone or can't be unpinned is skipped. Never throws. */
  async unpin(images: readonly string[], present: ReadonlySet<string> | undefined): Promise<void> {
    if (this.#host.unsupported !== undefined) return
    for (const image of images) {
      this.#own.delete(image)
      if (present?.has(image) === false) continue
      await this.#host
        .pin(image, false)
        .then(() => this.#logger.info({ image }, 'unpinned an image whose archive is gone'))
        .catch((error: unknown) => this.#logger.warn({ image, err: error }, 'cannot unpin an image'))
    }
  }
}
