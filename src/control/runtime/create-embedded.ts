import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import type { PoddConfig } from '../../config/options.ts'
import { EmbeddedContainerd } from '../../runtime/embedded-containerd.ts'
import type { HeldImage } from '../../runtime/containerd/unpacked-images.ts'
import type { ImageService, RuntimeService } from '../../runtime/cri-runtime.ts'
import type * as cri from '../../cri-types/cri-v1.ts'
import type { CgroupDriver } from '../../host/cgroups/layout.ts'
import { buildSandboxImage, sandboxImageName } from '../../images/sandbox-image.ts'
import type { HostInfo } from '../../host/facts/host-info.ts'
import type { EventRecorder, NodeEventRecorder } from '../../pod/state/pod-event.ts'
import { openImageRecords } from './create-records.ts'

export interface RuntimeAccessOptions {
  readonly config: PoddConfig
  readonly hostInfo: HostInfo
  readonly events: EventRecorder & NodeEventRecorder
  readonly clock: Clock
  readonly logger: Logger
}

/** What the embedded containerd needs of CRI, once it answers. */
export interface EmbeddedCalls {
  readonly runtime: Pick<RuntimeService, 'listPodSandbox' | 'listContainers'>
  readonly images: Pick<ImageService, 'listImages' | 'removeImage'>
}

/** The embedded containerd as podd's options want it; not started yet. */
export function createEmbedded(
  options: RuntimeAccessOptions,
  cgroupDriver: CgroupDriver,
  calls: () => EmbeddedCalls,
): EmbeddedContainerd {
  const { config, clock, logger, events, hostInfo } = options
  return new EmbeddedContainerd({
    rootDir: config.rootDir,
    runDir: config.runDir,
    cgroupDriver,
    sandboxImage: { name: sandboxImageName, build: () => buildSandboxImage() },
    podCidrs: config.podCidrs,
    registryConfigDir: config.registryConfigDir,
    ociRuntimes: config.ociRuntimes,
    // podd's own look at a pull comes first.
    pullStallMs: 3 * config.imagePullProgressTimeoutMs,
    known: {
      list: () => listIds(calls().runtime),
      listSandboxes: () => listSandboxIds(calls().runtime),
    },
    openImageRecords: (socketPath) => openImageRecords(socketPath, clock),
    unpacks: {
      bootId: hostInfo.bootId,
      images: {
        list: () => listImages(calls().images),
        remove: async (id) => void (await calls().images.removeImage({ image: { image: id } })),
      },
      onDiscarded: (image) => reportDiscarded(options, image),
    },
    events,
    clock,
    logger,
  })
}

/** The ids of the sandboxes that CRI lists. */
export async function listSandboxIds(
  runtime: Pick<RuntimeService, 'listPodSandbox'>,
  filter: cri.PodSandboxFilterInput = {},
): Promise<ReadonlySet<string>> {
  const { items } = await runtime.listPodSandbox({ filter })
  return new Set(items.map(({ id }) => id))
}

async function listIds(runtime: EmbeddedCalls['runtime']): Promise<ReadonlySet<string>> {
  const [sandboxes, { containers }] = await Promise.all([listSandboxIds(runtime), runtime.listContainers({})])
  return new Set([...sandboxes, ...containers.map(({ id }) => id)])
}

async function listImages(service: EmbeddedCalls['images']): Promise<readonly HeldImage[]> {
  const { images } = await service.listImages({})
  return images.map(({ id, repoTags, repoDigests }) => ({ id, names: [...repoTags, ...repoDigests] }))
}

function reportDiscarded({ events, logger }: RuntimeAccessOptions, { id, names }: HeldImage): void {
  const [image = id] = names
  logger.warn({ image }, 'removed an image that the power failed for while it was unpacked')
  events.recordNode({
    type: 'Warning',
    reason: 'ImageDiscarded',
    message: `removed the image ${image}: the power failed before its layers were on the disk. It is pulled or imported again.`,
  })
}
