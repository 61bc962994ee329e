import type { GarbageItem, GarbageReport } from '../../api/garbage.ts'
import type { ArchiveReport } from '../../api/image-archives.ts'
import type { ImageEntry } from '../../api/routes.ts'
import { PoddError } from '../../base/errors.ts'
import type { ImageArchives } from '../images/image-archives.ts'
import type { ImageGarbage } from '../images/image-garbage.ts'
import { toGarbageReport } from '../images/garbage-report.ts'
import type { RuntimeImages } from '../runtime/runtime-images.ts'

export interface NodeImagesOptions {
  readonly runtime: RuntimeImages
  readonly archives: ImageArchives
  /** Undefined where nothing collects images. */
  readonly garbage: () => ImageGarbage | undefined
  /** What is garbage besides images. */
  readonly collectGarbage: (
    options: { readonly dryRun: boolean },
    signal: AbortSignal,
  ) => Promise<readonly GarbageItem[]>
}

/** How long the runtime may take to list what was imported. */
const announceMs = 10_000

/** What the API says of the runtime's images, and does to them. */
export class NodeImages {
  readonly #options: NodeImagesOptions

  constructor(options: NodeImagesOptions) {
    this.#options = options
  }

  async listImages(): Promise<readonly ImageEntry[]> {
    const images = await this.#options.runtime.listImages()
    return images.map((image) => ({
      id: image.id,
      tags: image.repoTags,
      digests: image.repoDigests,
      sizeBytes: image.size,
      pinned: image.pinned,
    }))
  }

  listArchives(): readonly ArchiveReport[] {
    return this.#options.archives.reports()
  }

  async importImages(path: string, options: { readonly pin: boolean }): Promise<readonly string[]> {
    const { archives, runtime } = this.#options
    const names = await runtime.importImages(path, options)
    await archives.announce(names, AbortSignal.timeout(announceMs))
    return names
  }

  async collect(
    { dryRun, young }: { readonly dryRun: boolean; readonly young: boolean },
    signal: AbortSignal,
  ): Promise<GarbageReport> {
    const garbage = this.#options.garbage()
    if (garbage === undefined) throw new PoddError('INTERNAL', 'nothing collects images')
    const mode = { kind: 'unused', young } as const
    const collection = dryRun ? await garbage.preview(mode, signal) : await garbage.collect(mode, signal)
    const items = await this.#options.collectGarbage({ dryRun }, signal)
    return toGarbageReport(collection, items, dryRun)
  }

  pinImage(image: string, pinned: boolean): Promise<void> {
    return this.#options.runtime.pinImage(image, pinned)
  }
}
