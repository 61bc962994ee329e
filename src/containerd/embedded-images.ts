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
  /** Without it, images that a power cut may have damaged stay. */
  readonly unpacks: Omit<UnpackedImagesOptions, 'file' | 'logger'> | undefined
  /** The containerd that runs; one that is still starting is waited for. Throws PoddError RUNTIME_UNAVAILABLE. */
  readonly whenRunning: () => Promise<ImageImportTarget>
  /** Undefined while none runs. */
  readonly running: () => ImageImportTarget | undefined
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * The images of podd's own containerd, as far as CRI can't serve: imported, exported and pinned through its client, and
 * removed where a power cut has damaged them.
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

  /** For pulls over CRI; undefined where containerd has the layers on the disk by itself, or does not run. */
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

  /** Makes a containerd that has just started fit for pods: without damaged images, and with the sandbox's. Throws ImageImportError. */
  async prepare(target: ImageImportTarget): Promise<void> {
    await this.#unpacked?.recover({
      writeOut: () => this.#writeOuts.run(target),
      dropUnfinished: () => dropUnfinished(target),
    })
    await this.#ensureSandboxImage(target)
  }

  /**
   * Imports an archive into the image store, pins what it brought unless told not to, and gives the names. podd answers
   * before its containerd does: one that is still starting is waited for.
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

  /** Keeps image garbage collection away from an image, by one of its names, or no longer does. Throws as `importImages`. */
  async pinImage(name: string, pinned: boolean): Promise<void> {
    await pinImage(await this.#options.whenRunning(), name, pinned)
  }

  /** Removes a name of an image, if it is there. Throws as `importImages`. */
  async discardImage(name: string): Promise<void> {
    await discardImage(await this.#options.whenRunning(), name)
  }

  /** The names that are pinned. Throws as `importImages`. */
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

  /** An import, after which its images are on the disk; gives their names. */
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
