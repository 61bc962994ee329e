import type { ImageService } from '../cri/cri-runtime.ts'

/**
 * The calls for images of a containerd that leaves what it unpacks to the page cache, but records at once that it is
 * there (1.x): after a power cut the files of such an image are empty. Each image is written to the disk as soon as
 * it is pulled; nobody waits for that.
 */
export function writeOutPulled(images: ImageService, writeOut: () => void): ImageService {
  return {
    ...images,
    pullImage: async (request, options) => {
      const reply = await images.pullImage(request, options)
      writeOut()
      return reply
    },
  }
}
