import type { PoddConfig } from '../config/options.ts'
import { readDiskSpace } from '../host/host-probe.ts'
import type { NodeEventRecorder } from '../pod/state/pod-event.ts'
import { smallFile } from '../store/state-report.ts'
import type { PulledImages } from './images/pulled-images.ts'
import type { NodeWorkOptions } from './node/node-work.ts'
import type { RuntimeAccess } from './runtime/runtime-access.ts'

interface ImageGarbageParts {
  readonly config: PoddConfig
  readonly runtime: RuntimeAccess
  readonly pulled: PulledImages
  readonly events: NodeEventRecorder
}

/** What the garbage collection of images reads and removes, and its limits. */
export function assembleImageGarbage({
  config,
  runtime,
  pulled,
  events,
}: ImageGarbageParts): NonNullable<NodeWorkOptions['imageGarbage']> {
  const { imageStore, images: calls, runtime: client } = runtime
  return {
    host: {
      listImages: async (signal) => {
        const { mark } = pulled
        const images = await imageStore.listImages(signal)
        await pulled.prune(images, mark)
        return images
      },
      listContainers: async (signal) => (await client.listContainers({}, { signal })).containers,
      removeImage: async (id) => void (await calls.removeImage({ image: { image: id } })),
      imagesPath: (signal) => imageStore.imagesPath(signal),
      sandboxImage: (signal) => imageStore.sandboxImage(signal),
      readDisk: readDiskSpace,
    },
    policy: {
      highThresholdPercent: config.imageGcHighThresholdPercent,
      lowThresholdPercent: config.imageGcLowThresholdPercent,
      minimumAgeMs: config.imageMinimumGcAgeMs,
      maximumAgeMs: config.imageMaximumGcAgeMs,
    },
    usesFile: smallFile(`${config.rootDir}/image-uses.json`),
    events,
  }
}
