import type { ArchiveReport, GarbageItem, GarbageReport, RemovedImage } from '../../api/images.ts'
import type { ImageEntry } from '../../api/routes.ts'
import { PoddError } from '../../base/errors.ts'
import type { RuntimeImages } from '../runtime/runtime-images.ts'
import type { ImageArchives } from './archives.ts'
import { toGarbageReport } from './image-garbage.ts'
import type { ImageGarbage } from './image-garbage.ts'
import type { PresentImage, PullProgress, PullRequest } from './image-request.ts'

export interface NodeImagesOptions {
  readonly runtime: RuntimeImages
  readonly archives: ImageArchives
  readonly pull: (request: PullRequest) => Promise<PresentImage>
  /** Undefined where nothing collects images. */
  readonly garbage: () => ImageGarbage | undefined
  /** Collects garbage other than images. */
  readonly collectGarbage: (
    options: { readonly dryRun: boolean },
    signal: AbortSignal,
  ) => Promise<readonly GarbageItem[]>
}

/** How long the runtime may take to list what was imported. */
const announceMs = 10_000

/** The runtime's images for the API: listed, imported, exported, removed and pinned. */
export class NodeImages {
  readonly #options: NodeImagesOptions

  constructor(options: NodeImagesOptions) {
    this.#options = options
  }

  async listImages(
    { users: wantsUsers }: { readonly users: boolean },
    signal: AbortSignal,
  ): Promise<readonly ImageEntry[]> {
    const images = await this.#options.runtime.listImages(signal)
    const users = wantsUsers ? await this.#options.garbage()?.listUsers(signal) : undefined
    return images.map(({ id, repoTags: tags, repoDigests: digests, size: sizeBytes, pinned }) => {
      const entry = { id, tags, digests, sizeBytes, pinned }
      return users === undefined ? entry : Object.assign(entry, { usedBy: users.get(id) ?? [] })
    })
  }

  async pullImage(
    image: string,
    onProgress: (progress: PullProgress) => void,
    signal: AbortSignal,
  ): Promise<{ readonly id: string; readonly sizeBytes: number }> {
    const pulled = await this.#options.pull({ image, signal, onProgress })
    await this.#options.archives.announce([image], 'pulled', signal)
    return { id: pulled.ref, sizeBytes: pulled.image.size }
  }

  exportImages(images: readonly string[], signal: AbortSignal): AsyncIterable<Uint8Array> {
    return this.#options.runtime.exportImages(images, signal)
  }

  removeImage(image: string, force: boolean, signal: AbortSignal): Promise<RemovedImage> {
    const garbage = this.#options.garbage()
    if (garbage === undefined) throw new PoddError('INTERNAL', 'nothing collects images')
    return garbage.remove(image, force, signal)
  }

  listArchives(): readonly ArchiveReport[] {
    return this.#options.archives.reports()
  }

  async importImages(path: string, options: { readonly pin: boolean }): Promise<readonly string[]> {
    const { archives, runtime } = this.#options
    const names = await runtime.importImages(path, options)
    if (options.pin) await archives.noteUserPins(names, true)
    await archives.announce(names, 'imported', AbortSignal.timeout(announceMs))
    return names
  }

  async collect(
    {
      dryRun,
      young,
      imagesOnly,
    }: { readonly dryRun: boolean; readonly young: boolean; readonly imagesOnly: boolean },
    signal: AbortSignal,
  ): Promise<GarbageReport> {
    const garbage = this.#options.garbage()
    if (garbage === undefined) throw new PoddError('INTERNAL', 'nothing collects images')
    const mode = { kind: 'unused', young } as const
    const collection = dryRun ? await garbage.preview(mode, signal) : await garbage.collect(mode, signal)
    const items = imagesOnly ? [] : await this.#options.collectGarbage({ dryRun }, signal)
    return toGarbageReport(collection, items, dryRun)
  }

  async pinImage(image: string, pinned: boolean): Promise<void> {
    const names = await this.#options.runtime.pinImage(image, pinned)
    await this.#options.archives.noteUserPins(names, pinned)
  }
}
