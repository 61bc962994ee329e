import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import type { PodRef } from '../../pod/values/ids.ts'
import type * as cri from '../../cri-types/cri-v1.ts'

/** An image at hand. */
export interface PresentImage {
  /** What CreateContainer takes: the id that the name resolved to. */
  readonly ref: string
  readonly image: cri.Image
}

/** Which image a pod needs, and for which of its containers. */
export interface ImageRequest {
  readonly pod: PodRef
  readonly container: Pick<ContainerSpec, 'name' | 'image' | 'imagePullPolicy'>
  /** It was looked for beforehand; what wasn't there is looked for again. */
  readonly found?: Promise<PresentImage | undefined> | undefined
  /** It was pulled a moment ago: `Always` need not ask the registry again. */
  readonly fresh?: boolean
  readonly sandboxConfig: cri.PodSandboxConfigInput | undefined
  readonly signal: AbortSignal
}

/** CRI's name for the requested image. */
export function specOf({ container: { image } }: Pick<ImageRequest, 'container'>): cri.ImageSpecInput {
  return { image, userSpecifiedImage: image }
}
