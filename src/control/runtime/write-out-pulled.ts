import type { ImageUnpacking } from '../../runtime/containerd/unpacked-images.ts'
import type { ImageService } from '../../runtime/cri-runtime.ts'

export interface WriteOutOptions {
  /** Undefined where the runtime syncs layers to the disk before it reports them. */
  readonly unpacking: () => ImageUnpacking | undefined
  /** A pull whose layers were not, or may not have been, written to the disk. */
  readonly onFailure: (error: unknown) => void
}

/**
 * The image calls of a containerd that leaves unpacked layers in the page cache but records them at once (1.x): after a
 * power cut the files of such an image are empty. An image counts as pulled once it is on the disk; a caller that finds
 * it earlier waits for that.
 */
export function writeOutPulled(
  images: ImageService,
  { unpacking, onFailure }: WriteOutOptions,
): ImageService {
  // One that is pulled again and again (`Always`) is written once. That CRI listed it before proves nothing: its layers
  // may have been removed since, or never have been unpacked.
  const written = new Set<string>()
  return {
    ...images,
    pullImage: async (request, options) => {
      const unpack = unpacking()
      if (unpack === undefined) return images.pullImage(request, options)
      await unpack.begin()
      const reply = await images.pullImage(request, options).catch(async (error: unknown) => {
        await unpack.end([])
        throw error
      })
      try {
        if (!written.has(reply.imageRef)) await unpack.writeOut()
        written.add(reply.imageRef)
        await unpack.end([reply.imageRef])
      } catch (error) {
        // It stays on record that a power cut may damage it.
        onFailure(error)
      }
      return reply
    },
    removeImage: (request, options) => {
      // It is unpacked again when it comes back.
      written.clear()
      return images.removeImage(request, options)
    },
    imageStatus: async (request, options) => {
      const reply = await images.imageStatus(request, options)
      const unpack = unpacking()
      if (reply.image !== null && unpack?.isUnwritten(reply.image.id) === true)
        await unpack.writeOut().catch(onFailure)
      return reply
    },
  }
}
