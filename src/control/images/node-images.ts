import type { GarbageItem, GarbageReport } from '../../api/images.ts'
import type { ImageEntry } from '../../api/routes.ts'
import type { RuntimeImages } from '../runtime/runtime-images.ts'
import type { ImageArchives } from './archives.ts'
import { toGarbageReport } from './image-garbage.ts'
import type { ImageGarbage } from './image-garbage.ts'
import type { PresentImage, PullProgress, PullRequest } from './image-request.ts'

/** What carries out the API's calls about images. */
interface ImageEnv {
  readonly runtime: RuntimeImages
  readonly archives: ImageArchives
  readonly pull: (request: PullRequest) => Promise<PresentImage>
  readonly garbage: ImageGarbage
  /** Collects garbage other than images. */
  readonly collectGarbage: (
    options: { readonly dryRun: boolean },
    signal: AbortSignal,
  ) => Promise<readonly GarbageItem[]>
}

/** How long the runtime may take to list what was imported. */
const announceMs = 10_000

/** The runtime's images for the API: listed, imported, exported, removed and pinned. */
export function createNodeImages({ runtime, archives, pull, garbage, collectGarbage }: ImageEnv) {
  return {
    async listImages(
      { users: wantsUsers }: { readonly users: boolean },
      signal: AbortSignal,
    ): Promise<readonly ImageEntry[]> {
      const images = await runtime.listImages(signal)
      const users = wantsUsers ? await garbage.listUsers(signal) : undefined
      return images.map(({ id, repoTags: tags, repoDigests: digests, size: sizeBytes, pinned }) => {
        const entry = { id, tags, digests, sizeBytes, pinned }
        return users === undefined ? entry : Object.assign(entry, { usedBy: users.get(id) ?? [] })
      })
    },

    async pullImage(image: string, onProgress: (progress: PullProgress) => void, signal: AbortSignal) {
      const pulled = await pull({ image, signal, onProgress })
      await archives.announce([image], 'pulled', signal)
      return { id: pulled.ref, sizeBytes: pulled.image.size }
    },

    exportImages: (images: readonly string[], signal: AbortSignal) => runtime.exportImages(images, signal),

    removeImage: (image: string, force: boolean, signal: AbortSignal) => garbage.remove(image, force, signal),

    listArchives: () => archives.reports(),

    async importImages(path: string, { pin }: { readonly pin: boolean }): Promise<readonly string[]> {
      const names = await runtime.importImages(path, { pin })
      if (pin) await archives.noteUserPins(names, true)
      await archives.announce(names, 'imported', AbortSignal.timeout(announceMs))
      return names
    },

    async collect(
      wanted: { readonly dryRun: boolean; readonly young: boolean; readonly imagesOnly: boolean },
      signal: AbortSignal,
    ): Promise<GarbageReport> {
      const { dryRun, young, imagesOnly } = wanted
      const mode = { kind: 'unused', young } as const
      const collection = dryRun ? await garbage.preview(mode, signal) : await garbage.collect(mode, signal)
      const items = imagesOnly ? [] : await collectGarbage({ dryRun }, signal)
      return toGarbageReport(collection, items, dryRun)
    },

    async pinImage(image: string, pinned: boolean): Promise<void> {
      await archives.noteUserPins(await runtime.pinImage(image, pinned), pinned)
    },
  }
}
