import type * as cri from '../../cri-types/cri-v1.ts'
import { normalizeImageName } from '../../pod/values/image-name.ts'

/** What tells whether an image is in use. */
export interface ImageInUseCalls {
  imageStatus(
    request: cri.ImageStatusRequestInput,
    options: { readonly signal: AbortSignal },
  ): Promise<cri.ImageStatusResponse>
  listContainers(
    request: cri.ListContainersRequestInput,
    options: { readonly signal: AbortSignal },
  ): Promise<cri.ListContainersResponse>
}

/** Whether a container, running or not, has this image, under whatever name. Throws the runtime's error. */
export async function isImageInUse(
  calls: ImageInUseCalls,
  image: string,
  signal: AbortSignal,
): Promise<boolean> {
  const { image: found } = await calls.imageStatus({ image: { image } }, { signal })
  if (found === null) return false
  const names = new Set(
    [found.id, ...found.repoTags, ...found.repoDigests].map((name) => normalizeImageName(name)),
  )
  const { containers } = await calls.listContainers({}, { signal })
  return containers.some(({ image: spec, imageId, imageRef }) =>
    [imageId, imageRef, spec?.image ?? '', spec?.userSpecifiedImage ?? ''].some((name) =>
      names.has(normalizeImageName(name)),
    ),
  )
}
