import type * as cri from '../../cri-types/cri-v1.ts'
import type { PullRequest } from './image-request.ts'

/** What pulls present to registries. */
export interface ImageCredentials {
  /**
   * The credentials that fit the image of a request, best match first. They are tried in this order until a pull
   * succeeds, and the errors of all are gathered (`pkg/kubelet/kuberuntime/kuberuntime_image.go`, PullImage, 1.36). With
   * none, the image is pulled without credentials. Rejects where they cannot be read: the pull fails with that error.
   */
  candidates(request: PullRequest): Promise<readonly cri.AuthConfigInput[]>
}

/** Pulls without credentials. */
export const noCredentials: ImageCredentials = { candidates: () => Promise.resolve([]) }
