import { PoddError } from '../../base/errors.ts'

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

/** Whether a container with this waiting reason waits for its image. */
export function isImageReason(reason: string): boolean {
  return imageReasons.some((known) => known === reason)
}

/** An image that can't be had for now. */
export class ImageError extends PoddError {
  /** The container's waiting reason. */
  readonly reason: ImageReason
  /** Wall time before which it isn't tried again. */
  readonly retryAtMs: number

  constructor(reason: ImageReason, message: string, retryAtMs: number, cause?: unknown) {
    super('IMAGE_UNAVAILABLE', message, { cause })
    this.reason = reason
    this.retryAtMs = retryAtMs
  }
}
