import { PoddError } from '../../base/errors.ts'
import { jsonAt, parseJson } from '../../base/json.ts'
import type { EmbeddedContainerd } from '../../runtime/embedded-containerd.ts'
import type { ImageService, RuntimeService } from '../../runtime/cri-runtime.ts'
import type * as cri from '../../cri-types/cri-v1.ts'
import { openCompressed } from '../../images/image-archive.ts'
import { sandboxImageName } from '../../images/sandbox-image.ts'
import { findImageByName } from '../../decide/node/plan-image-garbage.ts'
import { normalizeImageName } from '../../pod/values/image-name.ts'

/** What is used of the file system that this path is on. */
interface UsedPlace {
  readonly path: string
  readonly usedBytes?: number | undefined
  readonly inodesUsed?: number | undefined
}

/** The runtime has it in memory. */
const usageMs = 4000

export type RuntimeImages = ReturnType<typeof createRuntimeImages>

/**
 * The runtime's image store: what CRI reports of it, and what only the embedded containerd can do.
 * @param embedded undefined for an external runtime
 */
export function createRuntimeImages(
  runtime: RuntimeService,
  service: ImageService,
  embedded: EmbeddedContainerd | undefined,
) {
  return {
    /** The directory of the images; undefined where the runtime doesn't report it. */
    async imagesPath(signal?: AbortSignal): Promise<string | undefined> {
      if (embedded !== undefined) return embedded.places.rootDir
      const { imageFilesystems } = await service.imageFsInfo({}, { signal })
      return imageFilesystems
        .map(({ fsId }) => fsId?.mountpoint)
        .find((path) => path !== undefined && path !== '')
    },

    /**
     * What images use of their file system, and the containers' writable layers of theirs, of which the first one each counts
     * (`pkg/kubelet/stats/cri_stats_provider.go` ImageFsStats, 1.36). Throws CriError where podd doesn't know by itself where the
     * images are, or the signal's reason.
     */
    async usage(
      signal: AbortSignal,
    ): Promise<{ readonly images: UsedPlace | undefined; readonly layers: UsedPlace | undefined }> {
      const path = embedded?.places.rootDir
      try {
        const reply = await service.imageFsInfo({}, { signal, deadlineMs: usageMs })
        return {
          images: toUsedPlace(reply.imageFilesystems[0], path),
          layers: toUsedPlace(reply.containerFilesystems[0], path),
        }
      } catch (error) {
        signal.throwIfAborted()
        // The file system as a whole is told all the same.
        if (path !== undefined) return { images: { path }, layers: undefined }
        throw error
      }
    },

    /** The image of the pods' sandboxes; undefined where the runtime doesn't report it: newer versions pin it instead. */
    async sandboxImage(signal?: AbortSignal): Promise<string | undefined> {
      if (embedded !== undefined) return sandboxImageName
      const { info } = await runtime.status({ verbose: true }, { signal })
      const name = jsonAt(parseJson(info['config']), 'sandboxImage')
      return typeof name === 'string' ? name : undefined
    },

    /** The runtime's images; pinned ones also where the runtime doesn't say so (containerd before 1.6.22). */
    async listImages(signal?: AbortSignal): Promise<readonly cri.Image[]> {
      const { images } = await service.listImages({}, { signal })
      if (embedded === undefined || images.length === 0) return images
      const pinned = new Set(await embedded.images.pinnedImages())
      return images.map((image) => {
        const isPinned = [...image.repoTags, ...image.repoDigests, image.id].some((name) => pinned.has(name))
        return Object.assign({}, image, { pinned: image.pinned || isPinned })
      })
    },

    /** Removes one name of an image, if it is there. Throws PoddError RUNTIME_*. */
    async discardName(name: string): Promise<void> {
      await embedded?.images.discardImage(name)
    },

    /**
     * An archive of these images, each by any of its names, as it is read. Throws PoddError IMAGE_NOT_FOUND,
     * EXPORT_UNSUPPORTED or IMAGE_EXPORT.
     */
    async *exportImages(wanted: readonly string[], signal: AbortSignal): AsyncGenerator<Buffer, void> {
      if (embedded === undefined) {
        throw new PoddError(
          'EXPORT_UNSUPPORTED',
          'images can be exported from the embedded containerd only',
          {
            hint: 'Use `ctr -n k8s.io images export FILE.tar NAME` with your containerd.',
          },
        )
      }
      const { images } = await service.listImages({}, { signal })
      const names = wanted.map((name) => {
        const found = findImage(images, name)
        const complete = normalizeImageName(name)
        return found.names.find((each) => each === name || each === complete) ?? found.names[0] ?? found.id
      })
      yield* embedded.images.exportImages(names, signal)
    },

    /**
     * Pins one name of an image, or unpins it; its other names stay as they are. Throws PoddError PIN_UNSUPPORTED or
     * RUNTIME_*.
     */
    async pinName(name: string, pinned: boolean): Promise<void> {
      if (embedded === undefined) throw pinUnsupported()
      await embedded.images.pinImages([name], pinned)
    },

    /** The complete names that are pinned. Throws PoddError RUNTIME_*. */
    async pinnedNames(): Promise<ReadonlySet<string>> {
      const names = (await embedded?.images.pinnedImages()) ?? []
      return new Set(names.map((name) => normalizeImageName(name)))
    },

    /** Whether images can be imported and pinned: podd does so in its own containerd alone. */
    takesArchives: embedded !== undefined,

    /**
     * Pins an image by any of its names, or unpins all of them; gives these names. Throws PoddError IMAGE_NOT_FOUND,
     * PIN_UNSUPPORTED or RUNTIME_*.
     */
    async pinImage(image: string, pinned: boolean): Promise<readonly string[]> {
      if (embedded === undefined) throw pinUnsupported()
      const wanted = normalizeImageName(image)
      const { images } = await service.listImages({})
      const { names } = findImage(images, image)
      const chosen = pinned && names.includes(wanted) ? [wanted] : names
      await embedded.images.pinImages(chosen, pinned)
      return chosen
    },

    /**
     * Imports an archive into the runtime's image store.
     * @param options.pin excludes the imported images from garbage collection: no registry may have them
     */
    async importImages(
      path: string,
      { pin, signal }: { readonly pin: boolean; readonly signal?: AbortSignal },
    ): Promise<readonly string[]> {
      if (embedded !== undefined) {
        const open = await openCompressed(path)
        return embedded.images.importImages({ path, open, signal }, { pin })
      }
      throw new PoddError('IMPORT_UNSUPPORTED', 'images can be imported into the embedded containerd only', {
        hint: 'Use `ctr -n k8s.io images import FILE.tar` with your containerd.',
      })
    },
  }
}

/** Throws PoddError IMAGE_NOT_FOUND. */
function findImage(images: readonly cri.Image[], wanted: string) {
  const known = images.map(({ id, repoTags, repoDigests }) => ({ id, names: [...repoTags, ...repoDigests] }))
  const found = findImageByName(known, wanted)
  if (found !== undefined) return found
  throw new PoddError('IMAGE_NOT_FOUND', `there is no image ${wanted}`, { hint: 'See `podd images`.' })
}

/** @param known where its images are, whatever the runtime says */
function toUsedPlace(
  usage: cri.FilesystemUsage | undefined,
  known: string | undefined,
): UsedPlace | undefined {
  const path = known ?? usage?.fsId?.mountpoint ?? ''
  if (path === '') return undefined
  return { path, usedBytes: usage?.usedBytes?.value, inodesUsed: usage?.inodesUsed?.value }
}

function pinUnsupported(): PoddError {
  return new PoddError('PIN_UNSUPPORTED', 'images can be pinned in the embedded containerd only', {
    hint: 'Use `ctr -n k8s.io images label NAME io.cri-containerd.pinned=pinned` with your containerd.',
  })
}
