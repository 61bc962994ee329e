import { parallelPulls } from '../../config/image-options.ts'
import type { PoddConfig } from '../../config/options.ts'
import type { Clock } from '../../base/clock.ts'
import { specOf } from '../../runtime/cri-runtime.ts'
import type { ImageService } from '../../runtime/cri-runtime.ts'
import type { ImageCredentials } from './image-credentials.ts'
import type { ImageGarbageHost } from './image-garbage.ts'
import { ImagePuller } from './image-puller.ts'
import type { ImagePullerOptions } from './image-puller.ts'
import { imageRoom } from './image-room.ts'
import { PullWatch } from './pull-watch.ts'
import type { PullContent } from './pull-watch.ts'

export interface ImagePullerParts {
  readonly images: ImageService
  readonly events: ImagePullerOptions['events']
  readonly clock: Clock
  readonly settings: Pick<
    PoddConfig,
    | 'serializeImagePulls'
    | 'maxParallelImagePulls'
    | 'registryPullQps'
    | 'registryBurst'
    | 'imagePullProgressTimeoutMs'
  >
  /** Left out, images are pulled without credentials, and every pod may use every image. */
  readonly credentials?: ImageCredentials
  /** Left out, no free space is asked for before a pull. */
  readonly imageGarbage?: { readonly host: ImageGarbageHost } | undefined
  /** Left out, the runtime alone gives up pulls that hang. */
  readonly pullContent?: PullContent | undefined
}

/**
 * The puller of this host's images, with what watches its pulls.
 * @param around `makeRoom` removes unused images where the disk is too full
 */
export function createImagePuller(
  { images, events, clock, settings, credentials, imageGarbage, pullContent: content }: ImagePullerParts,
  around: { readonly makeRoom: (signal: AbortSignal) => Promise<unknown> } & Pick<
    ImagePullerOptions,
    'onPulling'
  >,
): ImagePuller {
  const checkRoom = imageGarbage && imageRoom({ ...imageGarbage.host, collect: around.makeRoom, clock })
  const isPresent = async (id: string): Promise<boolean> =>
    (await images.imageStatus({ image: specOf(id) })).image !== null
  return new ImagePuller({
    images,
    events,
    clock,
    maxParallel: parallelPulls(settings),
    pullQps: settings.registryPullQps,
    pullBurst: settings.registryBurst,
    checkRoom,
    watch:
      content &&
      new PullWatch({
        content,
        isPresent,
        clock,
        stallMs: settings.imagePullProgressTimeoutMs,
        checkRoom,
      }),
    ...(around.onPulling !== undefined && { onPulling: around.onPulling }),
    ...(credentials !== undefined && { credentials }),
  })
}
