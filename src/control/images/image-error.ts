import { PoddError } from '../../base/errors.ts'

/** Why a container waits for its image (`pkg/kubelet/images/types.go` and cri-api's `pkg/errors`, 1.36). */
export type ImageReason =
  | 'ErrImageNeverPull'
  | 'ErrImagePull'
  | 'ImageInspectError'
  | 'ImagePullBackOff'
  | 'InvalidImageName'
  | 'RegistryUnavailable'
  | 'SignatureValidationFailed'

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
