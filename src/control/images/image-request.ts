import { PoddError } from '../../base/errors.ts'
import type * as cri from '../../cri-types/cri-v1.ts'
import type { PullSecrets } from '../../pod/objects/local-object.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import type { PodRef } from '../../pod/values/ids.ts'

export interface PresentImage {
  /** What CreateContainer takes: the id that the name resolved to. */
  readonly ref: string
  readonly image: cri.Image
}

/** Which image a pod needs, and for which of its containers. */
export interface ImageRequest {
  readonly pod: PodRef
  readonly container: Pick<ContainerSpec, 'name' | 'image' | 'imagePullPolicy'>
  /** It was pulled a moment ago: `Always` need not ask the registry again. */
  readonly fresh?: boolean
  /** Whose credentials a pull may use beside the node's; undefined where the pod has none. */
  readonly secrets?: PullSecrets | undefined
  readonly sandboxConfig: cri.Sent<cri.PodSandboxConfig> | undefined
  readonly signal: AbortSignal
}

export interface PullProgress {
  /** `queued`: other pulls are before it. `resolving`: its manifest isn't known yet. */
  readonly phase: 'queued' | 'resolving' | 'fetching' | 'unpacking'
  readonly doneBytes: number
  /** Of the config and of the layers that are not unpacked already, compressed; undefined where that isn't known. */
  readonly totalBytes: number | undefined
}

/** An image to be pulled now, whether or not it is present. */
export interface PullRequest {
  readonly image: string
  /** The pod that needs it; undefined where a user asks for it. */
  readonly pod?: PodRef | undefined
  /** Whose credentials it may use beside the node's. */
  readonly secrets?: PullSecrets | undefined
  readonly sandboxConfig?: cri.Sent<cri.PodSandboxConfig> | undefined
  /** Ends the waiting for it. */
  readonly signal: AbortSignal
  /** Called when the pull waits for its turn, and while it is in flight where the runtime tells how far it is. */
  readonly onProgress?: ((progress: PullProgress) => void) | undefined
}

/** Why a container waits for its image (`pkg/kubelet/images/types.go` and cri-api's `pkg/errors`, 1.36). */
const imageReasons = [
  // podd's own: an archive that brings it is about to be imported.
  'AwaitingImport',
  'ErrImageNeverPull',
  'ErrImagePull',
  'ImageInspectError',
  'ImagePullBackOff',
  'InvalidImageName',
  'RegistryUnavailable',
  'SignatureValidationFailed',
] as const

export type ImageReason = (typeof imageReasons)[number]

export function isImageReason(reason: string): boolean {
  return imageReasons.some((known) => known === reason)
}

/** An image that can't be had for now. */
export class ImageError extends PoddError {
  readonly reason: ImageReason
  /** Wall time before which it isn't tried again. */
  readonly retryAtMs: number

  constructor(reason: ImageReason, message: string, retryAtMs: number, cause?: unknown) {
    super('IMAGE_UNAVAILABLE', message, { cause })
    this.reason = reason
    this.retryAtMs = retryAtMs
  }
}
