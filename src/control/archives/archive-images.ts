import { errorMessage } from '../../base/errors.ts'
import { selectReplaced } from '../../decide/node/plan-image-archives.ts'
import type { ArchiveLook } from '../../images/archive-directory.ts'
import { normalizeImageName } from '../../pod/values/image-name.ts'
import type { ArchiveFiles, SeenFile } from './archive-files.ts'
import type { ArchivePins } from './archive-pins.ts'
import type { ArchiveRecords } from './archive-records.ts'
import type { ImageArchivesOptions } from './image-archives-host.ts'
import { importOrDiscard } from './import-archive.ts'
import type { PresentImages } from './present-images.ts'

interface ArchiveImagesOptions extends ImageArchivesOptions {
  readonly files: ArchiveFiles
  readonly records: ArchiveRecords
  readonly pins: ArchivePins
  readonly present: PresentImages
  /** Called with the complete names of images that are present and recorded. */
  readonly onRecorded: (images: readonly string[]) => void
}

/** Imports and pulls the images of archives and lists, pins them, and records that. */
export class ArchiveImages {
  readonly #options: ArchiveImagesOptions

  constructor(options: ArchiveImagesOptions) {
    this.#options = options
  }

  /** Imports an archive and records it. A failure is kept with the file. Never rejects because of one. */
  async import(name: string, signal: AbortSignal): Promise<void> {
    const { events, host, logger } = this.#options
    const seen = this.#options.files.get(name)
    const content = seen?.content
    if (seen === undefined || content?.kind !== 'archive') return
    const before = await this.#options.present.ask(signal)
    if (before === undefined) return
    try {
      const pinned = await this.#options.pins.list()
      const archive = { name, images: content.images, before }
      const names = await importOrDiscard(archive, { host, logger }, signal)
      const images = names.map((image) => normalizeImageName(image))
      for (const image of names) await this.#options.pins.pin(image, pinned)
      await this.#options.present.untilListed(images, signal)
      await this.#options.onImported(images)
      await this.#record(name, seen, { digest: content.digest, images, pinned })
      logger.info({ path: `${host.directory}/${name}`, image: images.join(' ') }, 'imported an image archive')
      const message = `Imported ${images.join(', ')} from ${host.directory}/${name}`
      events.recordNode({ type: 'Normal', reason: 'ImagesImported', message })
      this.#options.onImages(images)
    } catch (error) {
      if (signal.aborted) return
      this.#options.files.fail(seen, `${errorMessage(error)}${await this.#describeRoom(seen)}`)
    }
  }

  async #record(
    name: string,
    seen: SeenFile,
    {
      digest,
      images,
      pinned,
    }: {
      readonly digest: string
      readonly images: readonly string[]
      readonly pinned: ReadonlySet<string>
    },
  ): Promise<void> {
    await this.#options.pins.unpin(
      selectReplaced(name, images, this.#options.records.all),
      this.#options.present.known,
    )
    const kept = this.#options.pins.kept(images, pinned)
    const record = { ...timesOf(seen.look), digest, images }
    await this.#options.records.set(name, kept.length === 0 ? record : { ...record, kept })
    this.#options.onRecorded(images)
    this.#options.files.succeed(seen)
  }

  /** Pulls what lists of images name, one image at a time. Never rejects. */
  async pullLists(names: readonly string[], signal: AbortSignal): Promise<void> {
    for (const name of names) {
      const seen = this.#options.files.get(name)
      const content = seen?.content
      if (seen === undefined || content?.kind !== 'archive') continue
      const failures: string[] = []
      const pinned = await this.#options.pins.list().catch((error: unknown) => {
        failures.push(`cannot tell which images are pinned: ${errorMessage(error)}`)
        return undefined
      })
      for (const image of content.images) {
        if (pinned === undefined) break
        await this.#pullListed(image, pinned, signal).catch((error: unknown) => {
          failures.push(`cannot pull ${image}: ${errorMessage(error)}`)
        })
      }
      if (signal.aborted) return
      if (failures.length === 0 && pinned !== undefined)
        await this.#record(name, seen, { ...content, pinned })
      else this.#options.files.fail(seen, failures.join('; '))
    }
  }

  async #pullListed(image: string, pinned: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    const { host, onImages } = this.#options
    signal.throwIfAborted()
    if (!(await host.presentImages(signal)).has(image)) {
      await host.pull(image, signal)
      await this.#options.present.untilListed([image], signal)
      onImages([image])
    }
    await this.#options.pins.pin(image, pinned)
  }

  /** The disk space that a failed import may have lacked. */
  async #describeRoom({ look: { sizeBytes } }: SeenFile): Promise<string> {
    // The failure of the import is reported without the figure.
    const availableBytes = await this.#options.host.availableBytes().catch(() => undefined)
    if (availableBytes === undefined || availableBytes >= sizeBytes) return ''
    return `; the disk that holds the images has ${availableBytes} bytes available, and the archive has ${sizeBytes}`
  }
}

/** The identity of a file's version. */
export function timesOf({ sizeBytes, modifiedAtMs }: ArchiveLook) {
  return { sizeBytes, modifiedAtMs }
}
