import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/logger.ts'
import { smallFile } from '../store/small-file.ts'
import { hasImage } from './process/containerd-client.ts'
import type { ContainerdPlaces } from './process/containerd-places.ts'
import { exportImages } from './process/export-images.ts'
import {
  discardImage,
  dropUnfinished,
  importImageFile,
  importPinnedImage,
  listPinnedImages,
  needsWriteOut,
  pinImage,
} from './process/import-image.ts'
import type { ImageFile, ImageImportTarget } from './process/import-image.ts'
import { UnpackedImages } from './process/unpacked-images.ts'
import type { ImageUnpacking, UnpackedImagesOptions } from './process/unpacked-images.ts'
import { WriteOuts } from './process/write-outs.ts'
import type { ContainerdFileOptions } from './setup/write-containerd-files.ts'

export interface EmbeddedImagesOptions {
  readonly places: ContainerdPlaces
  readonly sandboxImage: ContainerdFileOptions['sandboxImage']
  /** Left out, images that a power cut may have damaged are kept. */
  readonly unpacks: Omit<UnpackedImagesOptions, 'file' | 'logger'> | undefined
  /** The running containerd; waits for one that is still starting. Throws PoddError RUNTIME_UNAVAILABLE. */
  readonly whenRunning: () => Promise<ImageImportTarget>
  /** Undefined while none runs. */
  readonly running: () => ImageImportTarget | undefined
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * The images of podd's own containerd, beyond what CRI can do: imports, exports and pins through its client, and
 * removes images that a power cut has damaged.
 */
export class EmbeddedImages {
  readonly #options: EmbeddedImagesOptions
  readonly #writeOuts = new WriteOuts()
  readonly #unpacked: UnpackedImages | undefined

  constructor(options: EmbeddedImagesOptions) {
    this.#options = options
    const { places, unpacks, logger } = options
    const file = smallFile(places.unpackRecordPath)
    this.#unpacked = unpacks && new UnpackedImages({ ...unpacks, file, logger })
  }

  /** Tracks pulls over CRI; undefined where containerd syncs layers to the disk itself, or does not run. */
  get unpacking(): ImageUnpacking | undefined {
    const unpacked = this.#unpacked
    const target = this.#options.running()
    if (unpacked === undefined || target === undefined || !needsWriteOut(target)) return undefined
    return {
      begin: () => unpacked.begin(),
      end: (ids) => unpacked.end(ids),
      isUnwritten: (id) => unpacked.isUnwritten(id),
      writeOut: () => this.#writeOuts.run(target),
    }
  }

  /**
   * Prepares a containerd that has just started for pods: removes damaged images and imports the sandbox image. Throws
   * ImageImportError.
   */
  async prepare(target: ImageImportTarget): Promise<void> {
    await this.#unpacked?.recover({
      writeOut: () => this.#writeOuts.run(target),
      dropUnfinished: () => dropUnfinished(target),
    })
    await this.#ensureSandboxImage(target)
  }

  /**
   * Imports an archive into the image store, pins its images by default, and returns their names. Waits for a
   * containerd that is still starting.
   *
   * @throws PoddError RUNTIME_UNAVAILABLE where containerd is down or does not come up; ImageImportError
   */
  async importImages(
    file: ImageFile,
    { pin }: { readonly pin: boolean } = { pin: true },
  ): Promise<readonly string[]> {
    const target = await this.#options.whenRunning()
    const names = await this.#importing(target, () => importImageFile(target, file))
    if (pin) for (const name of names) await pinImage(target, name)
    return names
  }

  /** An archive of images, as it is read. Throws as `importImages`, and PoddError IMAGE_EXPORT. */
  async *exportImages(names: readonly string[], signal: AbortSignal): AsyncGenerator<Buffer, void> {
    yield* exportImages(await this.#options.whenRunning(), names, signal)
  }

  /** Pins one name of an image, which excludes it from garbage collection, or unpins it. Throws as `importImages`. */
  async pinImage(name: string, pinned: boolean): Promise<void> {
    await pinImage(await this.#options.whenRunning(), name, pinned)
  }

  /** Removes a name of an image, if it exists. Throws as `importImages`. */
  async discardImage(name: string): Promise<void> {
    await discardImage(await this.#options.whenRunning(), name)
  }

  /** The pinned names. Throws as `importImages`. */
  async pinnedImages(): Promise<readonly string[]> {
    return listPinnedImages(await this.#options.whenRunning())
  }

  async #ensureSandboxImage(target: ImageImportTarget): Promise<void> {
    const { clock, sandboxImage, places } = this.#options
    if (await hasImage(target.socketPath, clock, sandboxImage.name)) return
    const archive = await sandboxImage.build()
    const { name } = sandboxImage
    await this.#importing(target, async () => {
      await importPinnedImage(target, { name, archive, tempDir: places.runDir })
      return [name]
    })
  }

  /** Imports an archive and syncs its images to the disk; returns their names. */
  async #importing(
    target: ImageImportTarget,
    work: () => Promise<readonly string[]>,
  ): Promise<readonly string[]> {
    const unpacked = needsWriteOut(target) ? this.#unpacked : undefined
    await unpacked?.begin()
    let names: readonly string[] = []
    try {
      names = await work()
      return names
    } finally {
      await unpacked?.endNamed(names)
    }
  }
}
