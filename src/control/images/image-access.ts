import type { EventRecorder } from '../../pod/state/pod-event.ts'
import type { PullCredential } from '../../decide/images/keyring.ts'
import type { ImageCredentials } from './image-credentials.ts'
import type { ImageRequest, PresentImage, PullRequest } from './image-request.ts'
import type { PodCredentials } from './pod-credentials.ts'
import type { PulledImages, PullOutcome } from './pulled-images.ts'

export interface ImageAccessOptions {
  readonly credentials: Pick<PodCredentials, 'find' | 'findOwn'>
  readonly pulled: Pick<PulledImages, 'mayUse' | 'begin' | 'end'>
  readonly events: EventRecorder
}

/** The credentials of pods, the records of what was pulled with them, and the events about both. */
export class ImageAccess implements ImageCredentials {
  readonly #options: ImageAccessOptions

  constructor(options: ImageAccessOptions) {
    this.#options = options
  }

  async candidates({ pod, image, secrets }: PullRequest): Promise<readonly PullCredential[]> {
    const { credentials, events } = this.#options
    const found = await credentials.find(image, secrets)
    if (pod !== undefined)
      for (const warning of found.warnings) events.record({ pod, type: 'Warning', ...warning })
    return found.credentials
  }

  mayUse({ container, secrets }: ImageRequest, { ref }: PresentImage): Promise<boolean> {
    const { credentials, pulled } = this.#options
    return pulled.mayUse(container.image, ref, credentials.findOwn(container.image, secrets))
  }

  begin(image: string): Promise<void> {
    return this.#options.pulled.begin(image)
  }

  end(image: string, outcome: PullOutcome): Promise<void> {
    return this.#options.pulled.end(image, outcome)
  }
}
