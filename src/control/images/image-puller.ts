import type { Clock } from '../../base/clock.ts'
import { PoddError, errorMessage } from '../../base/errors.ts'
import { Semaphore } from '../../base/semaphore.ts'
import type * as cri from '../../cri-types/cri-v1.ts'
import type { PodRef } from '../../pod/values/ids.ts'
import { parseImageName } from '../../pod/values/image-name.ts'
import type { EventRecorder } from '../../pod/state/pod-event.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'

/** What the puller needs of CRI's ImageService. */
export interface ImageCalls {
  imageStatus(request: cri.ImageStatusRequestInput): Promise<cri.ImageStatusResponse>
  pullImage(
    request: cri.PullImageRequestInput,
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<cri.PullImageResponse>
}

type ImageReason =
  | 'ErrImageNeverPull'
  | 'ErrImagePull'
  | 'ImageInspectError'
  | 'ImagePullBackOff'
  | 'InvalidImageName'

/** An image that can't be had for now. */
export class ImageError extends PoddError {
  /** The container's waiting reason (`pkg/kubelet/images/types.go`, 1.36). */
  readonly reason: ImageReason
  /** Wall time before which it isn't tried again. */
  readonly retryAtMs: number

  constructor(reason: ImageReason, message: string, retryAtMs: number, cause?: unknown) {
    super('IMAGE_UNAVAILABLE', message, { cause })
    this.reason = reason
    this.retryAtMs = retryAtMs
  }
}

/** An image at hand. */
export interface PresentImage {
  /** What CreateContainer takes: the id that the name resolved to. */
  readonly ref: string
  readonly image: cri.Image
}

export interface ImagePullerOptions {
  readonly images: ImageCalls
  readonly events: EventRecorder
  readonly clock: Clock
  /** One pull at a time (`serializeImagePulls`). */
  readonly serialize: boolean
  /** Pulls a second on average (`registryPullQPS`), and at once (`registryBurst`); 0: no limit. */
  readonly pullQps: number
  readonly pullBurst: number
}

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

const initialBackoffMs = 10_000
const maxBackoffMs = 300_000
/** How long a failed pull is shown as `ErrImagePull`, before what is left of its backoff as `ImagePullBackOff`. */
const showFailureMs = 2000
/** A pull without a waiting pod is cancelled after this: an interrupted worker may request it again at once. */
const unwantedPullMs = 10_000

interface Backoff {
  readonly delayMs: number
  /** On the monotonic clock: the wall clock may be set back. */
  readonly untilMs: number
  readonly message: string
}

/** A pull in flight, and how many wait for it. */
interface Pull {
  readonly work: Promise<cri.PullImageResponse>
  readonly cancel: AbortController
  waiting: number
}

/**
 * Gets images: by policy, with the kubelet's events and its backoff per pod and image, 10 s doubling
 * to 300 s (`pkg/kubelet/images/image_manager.go` EnsureImageExists, Kubernetes 1.36).
 */
export class ImagePuller {
  readonly #options: ImagePullerOptions
  readonly #turn: Semaphore
  readonly #backoffs = new Map<string, Backoff>()
  readonly #inFlight = new Map<string, Pull>()
  #tokens: number
  #refilledAtMs: number

  constructor(options: ImagePullerOptions) {
    this.#options = options
    this.#turn = new Semaphore(options.serialize ? 1 : 8)
    this.#tokens = options.pullBurst
    this.#refilledAtMs = options.clock.monotonicMs()
  }

  /** Resolves when the image is at hand; throws ImageError, or the signal's reason. */
  async ensure(request: ImageRequest): Promise<PresentImage> {
    const { container } = request
    if (parseImageName(container.image) === undefined) throw this.#refuseName(request)
    const present = (await request.found) ?? (await this.find(request))
    if (present !== undefined && (container.imagePullPolicy !== 'Always' || request.fresh === true)) {
      this.#event(
        request,
        'Normal',
        'Pulled',
        `Container image "${container.image}" already present on machine`,
      )
      return present
    }
    if (container.imagePullPolicy === 'Never') {
      const message = `Container image "${container.image}" is not present with pull policy of Never`
      this.#event(request, 'Warning', 'ErrImageNeverPull', message)
      throw new ImageError('ErrImageNeverPull', message, this.#options.clock.wallMs() + initialBackoffMs)
    }
    return this.#pull(request)
  }

  #refuseName(request: ImageRequest): ImageError {
    const { image } = request.container
    const message = `Failed to apply default image tag "${image}": couldn't parse image name "${image}": invalid reference format`
    this.#event(request, 'Warning', 'InspectFailed', message)
    this.#event(request, 'Warning', 'Failed', 'Error: InvalidImageName')
    return new ImageError('InvalidImageName', message, this.#options.clock.wallMs() + maxBackoffMs)
  }

  /** Forgets the failures of a pod's image: the manifest has changed, or the pod is gone. */
  clearBackoff(uid: string): void {
    for (const key of this.#backoffs.keys()) if (key.startsWith(`${uid} `)) this.#backoffs.delete(key)
  }

  /** The image if it is at hand, by any name. Throws ImageError, with an event. */
  async find(request: Pick<ImageRequest, 'pod' | 'container'>): Promise<PresentImage | undefined> {
    try {
      const { image } = await this.#options.images.imageStatus({ image: specOf(request) })
      return image === null ? undefined : { ref: image.id, image }
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

  async #pull(request: ImageRequest): Promise<PresentImage> {
    const { clock } = this.#options
    const { container, pod } = request
    const key = `${pod.uid} ${container.image}`
    const backoff = this.#backoffs.get(key)
    const beganMs = clock.monotonicMs()
    if (backoff !== undefined && beganMs < backoff.untilMs) {
      const message = `Back-off pulling image "${container.image}": ErrImagePull: ${backoff.message}`
      this.#event(request, 'Normal', 'BackOff', `Back-off pulling image "${container.image}"`)
      this.#event(request, 'Warning', 'Failed', 'Error: ImagePullBackOff')
      throw new ImageError('ImagePullBackOff', message, clock.wallMs() + backoff.untilMs - beganMs)
    }
    this.#event(request, 'Normal', 'Pulling', `Pulling image "${container.image}"`)
    try {
      await this.#pullShared(request)
      const present = await this.find(request)
      if (present === undefined)
        throw new PoddError('IMAGE_VANISHED', 'the image was pulled and does not exist')
      this.#backoffs.delete(key)
      const seconds = ((clock.monotonicMs() - beganMs) / 1000).toFixed(3)
      const size = `Image size: ${present.image.size} bytes.`
      this.#event(
        request,
        'Normal',
        'Pulled',
        `Successfully pulled image "${container.image}" in ${seconds}s. ${size}`,
      )
      return present
    } catch (error) {
      if (request.signal.aborted) throw request.signal.reason
      const delayMs = Math.min(backoff === undefined ? initialBackoffMs : backoff.delayMs * 2, maxBackoffMs)
      const untilMs = clock.monotonicMs() + delayMs
      const message = `failed to pull image "${container.image}": ${errorMessage(error)}`
      this.#backoffs.set(key, { delayMs, untilMs, message })
      this.#event(
        request,
        'Warning',
        'Failed',
        `Failed to pull image "${container.image}": ${errorMessage(error)}`,
      )
      this.#event(request, 'Warning', 'Failed', 'Error: ErrImagePull')
      throw new ImageError('ErrImagePull', message, clock.wallMs() + Math.min(delayMs, showFailureMs), error)
    }
  }

  /** Pods that want the same image at the same moment wait for one pull. */
  async #pullShared(request: ImageRequest): Promise<void> {
    const { clock } = this.#options
    const { image } = request.container
    const pull = this.#inFlight.get(image) ?? this.#beginPull(request)
    pull.waiting += 1
    try {
      await untilAborted(pull.work, request.signal)
    } finally {
      pull.waiting -= 1
      if (pull.waiting === 0) clock.startTimer(unwantedPullMs, () => this.#endUnwanted(image, pull))
    }
  }

  #beginPull(request: ImageRequest): Pull {
    const { image } = request.container
    const cancel = new AbortController()
    const work = this.#turn.run(async () => {
      cancel.signal.throwIfAborted()
      await this.#takeToken()
      return this.#options.images.pullImage(
        {
          image: specOf(request),
          ...(request.sandboxConfig === undefined ? {} : { sandboxConfig: request.sandboxConfig }),
        },
        { signal: cancel.signal },
      )
    })
    const pull = { work, cancel, waiting: 0 }
    this.#inFlight.set(image, pull)
    const forget = (): void => {
      if (this.#inFlight.get(image) === pull) this.#inFlight.delete(image)
    }
    work.then(forget, forget)
    return pull
  }

  /** A registry that hangs must not keep the others' turn for a pod that is gone. */
  #endUnwanted(image: string, pull: Pull): void {
    if (pull.waiting > 0 || this.#inFlight.get(image) !== pull) return
    this.#inFlight.delete(image)
    pull.cancel.abort(new PoddError('PULL_UNWANTED', 'no pod waits for this image any more'))
  }

  async #takeToken(): Promise<void> {
    const { clock, pullBurst, pullQps } = this.#options
    if (pullQps <= 0) return
    const nowMs = clock.monotonicMs()
    this.#tokens = Math.min(pullBurst, this.#tokens + ((nowMs - this.#refilledAtMs) / 1000) * pullQps)
    this.#refilledAtMs = nowMs
    this.#tokens -= 1
    if (this.#tokens < 0) await clock.sleep((-this.#tokens / pullQps) * 1000)
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

function specOf({ container: { image } }: Pick<ImageRequest, 'container'>): cri.ImageSpecInput {
  return { image, userSpecifiedImage: image }
}

/** Waits for `work` or for the signal, whichever comes first; the work goes on for whoever else waits for it. */
async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted()
  let stopListening = (): void => {}
  const aborted = new Promise<never>((_, reject) => {
    const onAbort = (): void => reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    stopListening = () => signal.removeEventListener('abort', onAbort)
  })
  try {
    return await Promise.race([work, aborted])
  } finally {
    stopListening()
  }
}
