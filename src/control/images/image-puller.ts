import type { Clock } from '../../base/clock.ts'
import { PoddError, errorMessage } from '../../base/errors.ts'
import type * as cri from '../../cri-types/cri-v1.ts'
import { parseImageName } from '../../pod/values/image-name.ts'
import type { EventRecorder } from '../../pod/state/pod-event.ts'
import { formatDuration } from '../../probes/go-words.ts'
import type { PodRef, PodUid } from '../../pod/values/ids.ts'
import { describePull } from './describe-pull.ts'
import { noCredentials } from './image-credentials.ts'
import type { ImageCredentials } from './image-credentials.ts'
import { ImageError } from './image-error.ts'
import { ImagePulls } from './image-pulls.ts'
import type { PullCalls, PullLimits } from './image-pulls.ts'
import type { CheckRoom } from './image-room.ts'
import { specOf } from '../../runtime/cri-runtime.ts'
import type { ImageRequest, PresentImage, PullRequest } from './image-request.ts'
import { readPullFailure } from './pull-failure.ts'
import type { PullWatch } from './pull-watch.ts'

/** What the puller needs of CRI's ImageService. */
export interface ImageCalls extends PullCalls {
  imageStatus(request: cri.ImageStatusRequestInput): Promise<cri.ImageStatusResponse>
}

export interface ImagePullerOptions extends PullLimits {
  readonly images: ImageCalls
  readonly events: EventRecorder
  readonly clock: Clock
  /** What registries are shown; without it, images are pulled without credentials. */
  readonly credentials?: ImageCredentials
  readonly watch?: PullWatch | undefined
  readonly checkRoom?: CheckRoom | undefined
  /** What `pulling` gives for this pod has changed. */
  readonly onPulling?: (uid: PodUid) => void
}

const initialBackoffMs = 10_000
const maxBackoffMs = 300_000
/** How long a failed pull is shown by its own reason, before what is left of its backoff as `ImagePullBackOff`. */
const showFailureMs = 2000

interface Backoff {
  readonly delayMs: number
  /** On the monotonic clock: the wall clock may be set back. */
  readonly untilMs: number
  readonly message: string
}

/**
 * Gets images: by policy, with the kubelet's events and its backoff per pod and image, 10 s doubling
 * to 300 s (`pkg/kubelet/images/image_manager.go` EnsureImageExists, Kubernetes 1.36).
 */
export class ImagePuller {
  readonly #options: ImagePullerOptions
  readonly #pulls: ImagePulls
  readonly #credentials: ImageCredentials
  readonly #backoffs = new Map<string, Backoff>()
  readonly #pulling = new Map<PodUid, ReadonlyMap<string, string>>()

  constructor(options: ImagePullerOptions) {
    this.#options = options
    this.#credentials = options.credentials ?? noCredentials
    this.#pulls = new ImagePulls({ ...options, credentials: this.#credentials })
  }

  /** Resolves when the image is present; throws ImageError, or the signal's reason. */
  async ensure(request: ImageRequest): Promise<PresentImage> {
    const { container } = request
    if (parseImageName(container.image) === undefined) throw this.#refuseName(request)
    const present = (await request.found) ?? (await this.find(request))
    if (present !== undefined && (await this.#isUsable(request, present))) {
      const message = `Container image "${container.image}" already present on machine and can be accessed by the pod`
      this.#event(request, 'Normal', 'Pulled', message)
      return present
    }
    // One that the pod has no right to is as good as absent: it does not learn that the image is there.
    if (container.imagePullPolicy === 'Never') {
      const message = `Container image "${container.image}" is not present with pull policy of Never`
      this.#event(request, 'Warning', 'ErrImageNeverPull', message)
      throw new ImageError('ErrImageNeverPull', message, this.#options.clock.wallMs() + initialBackoffMs)
    }
    return this.#pullFor(request)
  }

  /** Whether an image that is there need not be pulled. */
  async #isUsable(request: ImageRequest, present: PresentImage): Promise<boolean> {
    if (request.fresh === true) return true
    if (request.container.imagePullPolicy === 'Always') return false
    return this.#credentials.mayUse(request, present)
  }

  #refuseName(request: ImageRequest): ImageError {
    const { image } = request.container
    const message = `Failed to apply default image tag "${image}": couldn't parse image name "${image}": invalid reference format`
    this.#event(request, 'Warning', 'InspectFailed', message)
    this.#event(request, 'Warning', 'Failed', 'Error: InvalidImageName')
    return new ImageError('InvalidImageName', message, this.#options.clock.wallMs() + maxBackoffMs)
  }

  /** By container: how far the pull of its image is, where one is in flight and takes its time. */
  pulling(uid: PodUid): ReadonlyMap<string, string> {
    return this.#pulling.get(uid) ?? new Map()
  }

  #tellPulling({ uid }: PodRef, container: string, message: string | undefined): void {
    const before = this.#pulling.get(uid) ?? new Map()
    if (before.get(container) === message) return
    const after = new Map(before)
    if (message === undefined) after.delete(container)
    else after.set(container, message)
    if (after.size === 0) this.#pulling.delete(uid)
    else this.#pulling.set(uid, after)
    this.#options.onPulling?.(uid)
  }

  /** Forgets the failures of a pod's image: the manifest has changed, or the pod is gone. */
  clearBackoff(uid: string): void {
    for (const key of this.#backoffs.keys()) if (key.startsWith(`${uid} `)) this.#backoffs.delete(key)
  }

  /** The image if it is present, by any name. Throws ImageError, with an event. */
  async find(request: Pick<ImageRequest, 'pod' | 'container'>): Promise<PresentImage | undefined> {
    try {
      return await this.#look(request.container.image)
    } catch (error) {
      const message = `Failed to inspect image "${request.container.image}": ${errorMessage(error)}`
      this.#event(request, 'Warning', 'InspectFailed', message)
      throw new ImageError(
        'ImageInspectError',
        message,
        this.#options.clock.wallMs() + initialBackoffMs,
        error,
      )
    }
  }

  /**
   * Pulls an image for a user: without events, and whatever the backoff of pods. Throws the runtime's error, or the
   * signal's reason.
   */
  async pull(request: PullRequest): Promise<PresentImage> {
    await this.#pulls.pull(request)
    const present = await this.#look(request.image)
    if (present === undefined) throw vanished()
    return present
  }

  async #look(name: string): Promise<PresentImage | undefined> {
    const { image } = await this.#options.images.imageStatus({ image: specOf(name) })
    return image === null ? undefined : { ref: image.id, image }
  }

  async #pullFor(request: ImageRequest): Promise<PresentImage> {
    const { clock } = this.#options
    const { container, pod } = request
    const key = `${pod.uid} ${container.image}`
    const backoff = this.#backoffs.get(key)
    const beganMs = clock.monotonicMs()
    if (backoff !== undefined && beganMs < backoff.untilMs) {
      const message = `Back-off pulling image "${container.image}": ${backoff.message}`
      this.#event(request, 'Normal', 'BackOff', `Back-off pulling image "${container.image}"`)
      this.#event(request, 'Warning', 'Failed', 'Error: ImagePullBackOff')
      throw new ImageError('ImagePullBackOff', message, clock.wallMs() + backoff.untilMs - beganMs)
    }
    this.#event(request, 'Normal', 'Pulling', `Pulling image "${container.image}"`)
    try {
      const { durationMs } = await this.#pulls.pull({
        ...request,
        image: container.image,
        onProgress: (progress) =>
          this.#tellPulling(pod, container.name, describePull(container.image, progress)),
      })
      const present = await this.#look(container.image)
      if (present === undefined) throw vanished()
      this.#backoffs.delete(key)
      const took = formatDuration(Math.floor(durationMs))
      const inAll = formatDuration(Math.floor(clock.monotonicMs() - beganMs))
      const message = `Successfully pulled image "${container.image}" in ${took} (${inAll} including waiting). Image size: ${present.image.size} bytes.`
      this.#event(request, 'Normal', 'Pulled', message)
      return present
    } catch (error) {
      if (request.signal.aborted) throw request.signal.reason
      const delayMs = Math.min(backoff === undefined ? initialBackoffMs : backoff.delayMs * 2, maxBackoffMs)
      const untilMs = clock.monotonicMs() + delayMs
      const { reason, message } = readPullFailure(container.image, error)
      this.#backoffs.set(key, { delayMs, untilMs, message: `${reason}: ${message}` })
      this.#event(
        request,
        'Warning',
        'Failed',
        `Failed to pull image "${container.image}": ${errorMessage(error)}`,
      )
      this.#event(request, 'Warning', 'Failed', `Error: ${reason}`)
      throw new ImageError(reason, message, clock.wallMs() + Math.min(delayMs, showFailureMs), error)
    } finally {
      this.#tellPulling(pod, container.name, undefined)
    }
  }

  #event(
    request: Pick<ImageRequest, 'pod' | 'container'>,
    type: 'Normal' | 'Warning',
    reason: string,
    message: string,
  ): void {
    this.#options.events.record({
      pod: request.pod,
      container: request.container.name,
      type,
      reason,
      message,
    })
  }
}

function vanished(): PoddError {
  return new PoddError('IMAGE_VANISHED', 'the image was pulled and does not exist')
}
