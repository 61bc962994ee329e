import type { ImageService } from '../../cri/cri-runtime.ts'

/**
 * The calls for images of a containerd that leaves what it unpacks to the page cache, but records at once that it is
 * there (1.x): after a power cut the files of such an image are empty. Each image is written to the disk as soon as
 * it is pulled; nobody waits for that. One that is pulled again and again (`Always`) is written once.
 */
export function writeOutPulled(images: ImageService, writeOut: () => void): ImageService {
  const written = new Set<string>()
  return {
    ...images,
    pullImage: async (request, options) => {
      const reply = await images.pullImage(request, options)
      if (!written.has(reply.imageRef)) writeOut()
      written.add(reply.imageRef)
      return reply
    },
    removeImage: (request, options) => {
      // It is unpacked again when it comes back.
      written.clear()
      return images.removeImage(request, options)
    },
  }
}
