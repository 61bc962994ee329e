import type { Logger } from '../base/logger.ts'
import { smallFile } from '../store/small-file.ts'
import type { ImageRecords } from './client/image-records.ts'
import type { ContainerdPlaces } from './process/containerd-places.ts'
import { exportImages } from './process/export-images.ts'
import { importImageBytes, importImageFile, needsWriteOut } from './process/import-image.ts'
import type { ImageFile, ImageImportTarget } from './process/import-image.ts'
import { UnpackedImages } from './process/unpacked-images.ts'
import type { ImageUnpacking, UnpackedImagesOptions } from './process/unpacked-images.ts'
import { WriteOuts } from './process/write-outs.ts'
import type { ContainerdFileOptions } from './setup/write-containerd-files.ts'

/** Connects to a containerd by its socket, also to one that has just started; its user closes it. */
export type OpenImageRecords = (socketPath: string) => ImageRecords

export interface EmbeddedImagesOptions {
  readonly places: ContainerdPlaces
  readonly sandboxImage: ContainerdFileOptions['sandboxImage']
  /** Left out, images that a power cut may have damaged are kept. */
  readonly unpacks: Omit<UnpackedImagesOptions, 'file' | 'logger'> | undefined
  /** The running containerd; waits for one that is still starting. Throws PoddError RUNTIME_UNAVAILABLE. */
  readonly whenRunning: () => Promise<ImageImportTarget>
  /** Undefined while none runs. */
  readonly running: () => ImageImportTarget | undefined
  readonly openRecords: OpenImageRecords
  readonly logger: Logger
}

/**
 * The images of podd's own containerd, beyond what CRI can do: imports and exports through its client, pins, and removes
 * images that a power cut has damaged.
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
   * ImageImportError, and PoddError RUNTIME_* where containerd fails.
   */
  async prepare(target: ImageImportTarget): Promise<void> {
    await this.#asking(target, async (records) => {
      await this.#unpacked?.recover({
        writeOut: () => this.#writeOuts.run(target),
        dropUnfinished: () => records.dropUnfinished(),
      })
      await this.#ensureSandboxImage(target, records)
    })
  }

  /**
   * Imports an archive into the image store, pins its images by default, and returns their names. Waits for a
   * containerd that is still starting.
   *
   * @throws PoddError RUNTIME_UNAVAILABLE where containerd is down or does not come up, RUNTIME_* where it fails to pin
   * them; ImageImportError
   */
  async importImages(
    file: ImageFile,
    { pin }: { readonly pin: boolean } = { pin: true },
  ): Promise<readonly string[]> {
    const target = await this.#options.whenRunning()
    const names = await this.#importing(target, () => importImageFile(target, file))
    if (pin) await this.#asking(target, (records) => pinAll(records, names, true))
    return names
  }

  /** An archive of images, as it is read. Throws as `importImages`, and PoddError IMAGE_EXPORT. */
  async *exportImages(names: readonly string[], signal: AbortSignal): AsyncGenerator<Buffer, void> {
    yield* exportImages(await this.#options.whenRunning(), names, signal)
  }

  /**
   * Pins names of images, which excludes them from garbage collection, or unpins them. Throws PoddError RUNTIME_*, of
   * them RUNTIME_NOT_FOUND for the first name that doesn't exist.
   */
  async pinImages(names: readonly string[], pinned: boolean): Promise<void> {
    await this.#asking(await this.#options.whenRunning(), (records) => pinAll(records, names, pinned))
  }

  /** Removes a name of an image, if it exists. Throws PoddError RUNTIME_*. */
  async discardImage(name: string): Promise<void> {
    await this.#asking(await this.#options.whenRunning(), (records) => records.discard(name))
  }

  /** The pinned names. Throws PoddError RUNTIME_*. */
  async pinnedImages(): Promise<readonly string[]> {
    return this.#asking(await this.#options.whenRunning(), (records) => records.pinned())
  }

  async #ensureSandboxImage(target: ImageImportTarget, records: ImageRecords): Promise<void> {
    const { sandboxImage, places } = this.#options
    const { name } = sandboxImage
    if (await records.has(name)) return
    const archive = await sandboxImage.build()
    await this.#importing(target, async () => {
      const names = await importImageBytes(target, archive, places.runDir)
      await records.pin(name)
      return names
    })
  }

  async #asking<T>(
    { socketPath }: ImageImportTarget,
    ask: (records: ImageRecords) => Promise<T>,
  ): Promise<T> {
    const records = this.#options.openRecords(socketPath)
    try {
      return await ask(records)
    } finally {
      records.close()
    }
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

async function pinAll(records: ImageRecords, names: readonly string[], pinned: boolean): Promise<void> {
  for (const name of names) await records.pin(name, pinned)
}
