import type { PullCredential } from '../../decide/images/keyring.ts'
import type { ImageRequest, PresentImage, PullRequest } from './image-request.ts'
import type { PullOutcome } from './pulled-images.ts'

/** What pulls present to registries, and which pods may use what was pulled. */
export interface ImageCredentials {
  /**
   * The credentials that fit the image of a request, best match first. They are tried in this order until a pull
   * succeeds, and the errors of all are gathered (`pkg/kubelet/kuberuntime/kuberuntime_image.go`, PullImage, 1.36). With
   * none, the image is pulled without credentials. Rejects where they cannot be read: the pull fails with that error.
   */
  candidates(request: PullRequest): Promise<readonly PullCredential[]>
  /** Whether the pod may use an image that is on the machine without a pull. */
  mayUse(request: ImageRequest, present: PresentImage): Promise<boolean>
  /** Records that a pull is about to begin. Throws PoddError where that fails: then it must not begin. */
  begin(image: string): Promise<void>
  /** Records its outcome. Never rejects. */
  end(image: string, outcome: PullOutcome): Promise<void>
}

/** Pulls without credentials, and every pod may use every image. */
export const noCredentials: ImageCredentials = {
  candidates: () => Promise.resolve([]),
  mayUse: () => Promise.resolve(true),
  begin: () => Promise.resolve(),
  end: () => Promise.resolve(),
}
