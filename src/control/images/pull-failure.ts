import { errorMessage } from '../../base/errors.ts'
import type { ImageReason } from './image-error.ts'

/** Why a pull failed, as the container's status shows it. */
export interface PullFailure {
  readonly reason: ImageReason
  readonly message: string
}

/** What a runtime begins its message with, by reason (cri-api's `pkg/errors/errors.go`, 1.36), and how podd puts it. */
const named = [
  ['RegistryUnavailable', 'the registry is unavailable'],
  ['SignatureValidationFailed', 'the signature validation failed'],
] as const

/**
 * The reason and the message of a failed pull (`pkg/kubelet/images/image_manager.go`, evalCRIPullErr, 1.36). CRI has no
 * codes for these two reasons: runtimes send them as the first word of the message, so this is the one place in podd
 * where the text of an error is matched.
 */
export function readPullFailure(image: string, error: unknown): PullFailure {
  const message = errorMessage(error)
  for (const [reason, words] of named)
    if (message.startsWith(reason))
      return {
        reason,
        message: `image pull failed for ${image} because ${words}${message.slice(reason.length)}`,
      }
  return { reason: 'ErrImagePull', message }
}
