import type { Clock } from '../../base/clock.ts'
import { errorMessage, PoddError } from '../../base/errors.ts'
import { Semaphore, TokenBucket, untilAborted } from '../../base/waits.ts'
import { formatDuration } from '../../base/text.ts'
import { parallelPulls } from '../../config/image-options.ts'
import type { PoddConfig } from '../../config/options.ts'
import { toAuthConfig } from '../../decide/images/keyring.ts'
import type { PullCredential } from '../../decide/images/keyring.ts'
import type { UsedCredential } from '../../decide/images/pulled-record.ts'
import type { EventRecorder } from '../../pod/state/pod-event.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import type { PodRef, PodUid } from '../../pod/values/ids.ts'
import { parseImageName } from '../../pod/values/image-name.ts'
import { isCriError, specOf } from '../../runtime/cri-runtime.ts'
import type { ImageService } from '../../runtime/cri-runtime.ts'
import type { ImageCredentials } from './image-access.ts'
import type { ImageGarbage } from './image-garbage.ts'
import { ImageError } from './image-request.ts'
import type { ImageReason, ImageRequest, PresentImage, PullProgress, PullRequest } from './image-request.ts'
import { describePull, imageRoom, PullWatch } from './pull-watch.ts'
import type { CheckRoom, PullContent } from './pull-watch.ts'

interface PullEnv {
  readonly images: Pick<ImageService, 'pullImage'>
  readonly credentials: ImageCredentials
  readonly clock: Clock
  /** How many images are pulled at a time (`serializeImagePulls`, `maxParallelImagePulls`); undefined: no limit. */
  readonly maxParallel: number | undefined
  /** Pulls a second on average (`registryPullQPS`), and at once (`registryBurst`); 0: no limit. */
  readonly pullQps: number
  readonly pullBurst: number
  /** Tells how far pulls are, and gives up those that hang; undefined where the runtime alone gives up. */
  readonly watch: PullWatch | undefined
  readonly checkRoom: CheckRoom
}

interface ImagePullerEnv extends PullEnv {
  readonly images: Pick<ImageService, 'imageStatus' | 'pullImage'>
  readonly events: EventRecorder
  /** What `pulling` gives for this pod has changed. */
  readonly onPulling: (uid: PodUid) => void
  readonly wentBack: WentBack
}

/**
 * Where a pod went back to an earlier revision: what the name of this container's image meant then, where that is known.
 * Undefined where the pod is as its source gives it.
 */
export type WentBack = (
  pod: PodRef,
  container: Pick<ContainerSpec, 'name' | 'image'>,
) => { readonly imageId: string | undefined } | undefined

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
  readonly #env: ImagePullerEnv
  readonly #pulls: ImagePulls
  readonly #backoffs = new Map<string, Backoff>()
  readonly #pulling = new Map<PodUid, ReadonlyMap<string, string>>()
  /** How many pulls each pod waits for. */
  readonly #awaited = new Map<PodUid, number>()

  constructor(env: ImagePullerEnv) {
    this.#env = env
    this.#pulls = new ImagePulls(env)
  }

  /** Resolves when the image is present; throws ImageError, or the signal's reason. */
  async ensure(request: ImageRequest): Promise<PresentImage> {
    const { container } = request
    if (parseImageName(container.image) === undefined) throw this.#refuseName(request)
    const ran = await this.#findRan(request)
    if (ran !== undefined) return ran
    const present = await this.find(request)
    if (present !== undefined && (await this.#isUsable(request, present))) {
      const message = `Container image "${container.image}" already present on machine and can be accessed by the pod`
      this.#event(request, 'Normal', 'Pulled', message)
      return present
    }
    // One that the pod has no right to is as good as absent: it does not learn that the image is there.
    if (container.imagePullPolicy === 'Never') {
      const message = `Container image "${container.image}" is not present with pull policy of Never`
      this.#event(request, 'Warning', 'ErrImageNeverPull', message)
      throw new ImageError('ErrImageNeverPull', message, this.#env.clock.wallMs() + initialBackoffMs)
    }
    return this.#pullFor(request)
  }

  /**
   * The image for a pod that went back: the one that ran is used where it is here, by its ID, else one of its name. No registry
   * is asked, which may be away, or have another image by that name meanwhile: going back ends an outage.
   */
  async #findRan(request: ImageRequest): Promise<PresentImage | undefined> {
    const { pod, container } = request
    const went = this.#env.wentBack(pod, container)
    if (went === undefined) return undefined
    // One that can't be looked at is none: that of its name is looked for then.
    const ran = went.imageId === undefined ? undefined : await this.#look(went.imageId).catch(() => undefined)
    const present = ran ?? (await this.find(request))
    if (present === undefined || !(await this.#env.credentials.mayUse(request, present))) return undefined
    const message = `Container image "${container.image}" is used as it is present on machine, without its registry: the pod went back to an earlier revision`
    this.#event(request, 'Normal', 'Pulled', message)
    return present
  }

  /** Whether an image that is there need not be pulled. */
  async #isUsable(request: ImageRequest, present: PresentImage): Promise<boolean> {
    if (request.fresh === true) return true
    if (request.container.imagePullPolicy === 'Always') return false
    return this.#env.credentials.mayUse(request, present)
  }

  #refuseName(request: ImageRequest): ImageError {
    const { image } = request.container
    const message = `Failed to apply default image tag "${image}": couldn't parse image name "${image}": invalid reference format`
    this.#event(request, 'Warning', 'InspectFailed', message)
    this.#event(request, 'Warning', 'Failed', 'Error: InvalidImageName')
    return new ImageError('InvalidImageName', message, this.#env.clock.wallMs() + maxBackoffMs)
  }

  /** By container: how far the pull of its image is, where one is in flight and takes its time. */
  pulling(uid: PodUid): ReadonlyMap<string, string> {
    return this.#pulling.get(uid) ?? new Map()
  }

  /** Whether a pull for this pod is in flight, or waits for its turn. */
  isPulling(uid: PodUid): boolean {
    return this.#awaited.has(uid)
  }

  #countPull({ uid }: PodRef, change: 1 | -1): void {
    const count = (this.#awaited.get(uid) ?? 0) + change
    if (count === 0) this.#awaited.delete(uid)
    else this.#awaited.set(uid, count)
    this.#env.onPulling(uid)
  }

  #tellPulling({ uid }: PodRef, container: string, message: string | undefined): void {
    const before = this.#pulling.get(uid) ?? new Map()
    if (before.get(container) === message) return
    const after = new Map(before)
    if (message === undefined) after.delete(container)
    else after.set(container, message)
    if (after.size === 0) this.#pulling.delete(uid)
    else this.#pulling.set(uid, after)
    this.#env.onPulling(uid)
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
      throw new ImageError('ImageInspectError', message, this.#env.clock.wallMs() + initialBackoffMs, error)
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
    const { image } = await this.#env.images.imageStatus({ image: specOf(name) })
    return image === null ? undefined : { ref: image.id, image }
  }

  async #pullFor(request: ImageRequest): Promise<PresentImage> {
    const { clock } = this.#env
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
    this.#countPull(pod, 1)
    try {
      const durationMs = await this.#pulls.pull({
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
      this.#countPull(pod, -1)
      this.#tellPulling(pod, container.name, undefined)
    }
  }

  #event(
    request: Pick<ImageRequest, 'pod' | 'container'>,
    type: 'Normal' | 'Warning',
    reason: string,
    message: string,
  ): void {
    this.#env.events.record({
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

/** A pull without a waiting pod is cancelled after this: an interrupted worker may request it again at once. */
const unwantedPullMs = 10_000

/** After these the runtime may have the image after all. */
const noAnswer = ['RUNTIME_UNAVAILABLE', 'RUNTIME_TIMEOUT'] as const

/** A pull in flight, and how many wait for it. */
interface Pull {
  readonly work: Promise<number>
  readonly cancel: AbortController
  readonly listeners: Set<(progress: PullProgress) => void>
  progress: PullProgress | undefined
  waiting: number
}

/**
 * The pulls in flight: one for all pods that want the same image with the same credentials at the same moment, in the
 * order in which they were requested (`pkg/kubelet/images/puller.go`, 1.36).
 */
export class ImagePulls {
  readonly #env: PullEnv
  readonly #turn: Semaphore
  readonly #inFlight = new Map<string, Pull>()
  readonly #tokens: TokenBucket

  constructor(env: PullEnv) {
    this.#env = env
    const { maxParallel = Infinity, pullQps, pullBurst, clock } = env
    this.#turn = new Semaphore(maxParallel)
    this.#tokens = new TokenBucket(pullQps, pullBurst, clock.monotonicMs())
  }

  /**
   * Resolves when the image was pulled, with how many milliseconds that took, without the wait for its turn. Throws the
   * runtime's error, or the request's signal's reason.
   */
  async pull(request: PullRequest): Promise<number> {
    const { clock, credentials } = this.#env
    const candidates = await credentials.candidates(request)
    const key = JSON.stringify([request.image, ...candidates.map(({ hash }) => hash)])
    const pull = this.#inFlight.get(key) ?? this.#begin(key, request, candidates)
    const { onProgress } = request
    pull.waiting += 1
    if (onProgress !== undefined) pull.listeners.add(onProgress)
    if (pull.progress !== undefined) onProgress?.(pull.progress)
    try {
      return await untilAborted(pull.work, request.signal)
    } finally {
      pull.waiting -= 1
      if (onProgress !== undefined) pull.listeners.delete(onProgress)
      if (pull.waiting === 0) clock.startTimer(unwantedPullMs, () => this.#endUnwanted(key, pull))
    }
  }

  #begin(key: string, request: PullRequest, candidates: readonly PullCredential[]): Pull {
    const cancel = new AbortController()
    const listeners: Pull['listeners'] = new Set()
    const tell = (progress: PullProgress): void => {
      pull.progress = progress
      for (const listener of listeners) listener(progress)
    }
    let isQueued = true
    const work = this.#turn.run(async () => {
      isQueued = false
      await Promise.resolve()
      if (pull.progress !== undefined) tell({ phase: 'resolving', doneBytes: 0, totalBytes: undefined })
      return this.#fetch(request, candidates, { cancel, tell })
    }, cancel.signal)
    const progress: PullProgress = { phase: 'queued', doneBytes: 0, totalBytes: undefined }
    const pull: Pull = { work, cancel, listeners, progress: isQueued ? progress : undefined, waiting: 0 }
    this.#inFlight.set(key, pull)
    const forget = (): void => {
      if (this.#inFlight.get(key) === pull) this.#inFlight.delete(key)
    }
    work.then(forget, forget)
    return pull
  }

  async #fetch(
    request: PullRequest,
    candidates: readonly PullCredential[],
    { cancel, tell }: Pick<Pull, 'cancel'> & { readonly tell: (progress: PullProgress) => void },
  ): Promise<number> {
    const { checkRoom, clock, watch } = this.#env
    cancel.signal.throwIfAborted()
    const beganMs = clock.monotonicMs()
    await checkRoom(0, cancel.signal)
    const endWatch = watch?.begin({
      image: request.image,
      onProgress: tell,
      giveUp: (error) => cancel.abort(error),
    })
    try {
      await this.#recorded(request.image, cancel.signal, () =>
        this.#tryEach(request, candidates, cancel.signal),
      )
      return clock.monotonicMs() - beganMs
    } finally {
      endWatch?.()
    }
  }

  /** Records a pull before it begins and when it has ended, whoever still waits for it. */
  async #recorded(image: string, signal: AbortSignal, work: () => Promise<UsedCredential>): Promise<void> {
    const { credentials } = this.#env
    await credentials.begin(image)
    try {
      await credentials.end(image, { kind: 'pulled', used: await work() })
    } catch (error) {
      const isUnknown = signal.aborted || noAnswer.some((code) => isCriError(error, code))
      await credentials.end(image, { kind: isUnknown ? 'unknown' : 'failed' })
      throw error
    }
  }

  /** Gives what it succeeded with. */
  async #tryEach(
    request: PullRequest,
    candidates: readonly PullCredential[],
    signal: AbortSignal,
  ): Promise<UsedCredential> {
    const errors: unknown[] = []
    for (const candidate of candidates.length === 0 ? [undefined] : candidates) {
      await this.#takeToken(signal)
      try {
        await this.#env.images.pullImage(
          {
            image: specOf(request.image),
            ...(candidate !== undefined && { auth: toAuthConfig(candidate.credential) }),
            ...(request.sandboxConfig !== undefined && { sandboxConfig: request.sandboxConfig }),
          },
          { signal },
        )
        return candidate?.secret === undefined ? 'none' : { ...candidate.secret, hash: candidate.hash }
      } catch (error) {
        signal.throwIfAborted()
        errors.push(error)
      }
    }
    throw gather(errors)
  }

  /** A registry that hangs must not keep the others' turn for a pod that is gone. */
  #endUnwanted(key: string, pull: Pull): void {
    if (pull.waiting > 0 || this.#inFlight.get(key) !== pull) return
    this.#inFlight.delete(key)
    pull.cancel.abort(new PoddError('PULL_UNWANTED', 'no pod waits for this image any more'))
  }

  async #takeToken(signal: AbortSignal): Promise<void> {
    const { clock, pullQps } = this.#env
    if (pullQps <= 0) return
    const waitMs = this.#tokens.take(clock.monotonicMs())
    if (waitMs === 0) return
    try {
      await clock.sleep(waitMs, signal)
    } catch (error) {
      this.#tokens.giveBack()
      throw error
    }
  }
}

/** One error that has what all credentials led to, each message once (apimachinery's `pkg/util/errors`, NewAggregate, 1.36). */
function gather(errors: readonly unknown[]): unknown {
  const messages = [...new Set(errors.map((error) => errorMessage(error)))]
  if (messages.length <= 1) return errors[0]
  return new PoddError('IMAGE_UNAVAILABLE', `[${messages.join(', ')}]`, { cause: errors[0] })
}

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

/** The puller of this host's images, with what watches its pulls. */
export function createImagePuller(
  env: Pick<ImagePullerEnv, 'events' | 'clock' | 'credentials'> & {
    readonly images: ImageService
    readonly pullContent: PullContent | undefined
    readonly settings: PoddConfig
  },
  garbage: ImageGarbage,
  { onPulling, wentBack }: Pick<ImagePullerEnv, 'onPulling' | 'wentBack'>,
): ImagePuller {
  const { images, clock, settings, pullContent: content } = env
  const collect = (signal: AbortSignal): Promise<unknown> => garbage.collect({ kind: 'thresholds' }, signal)
  const checkRoom = imageRoom(garbage.host, collect, clock)
  const isPresent = async (id: string): Promise<boolean> =>
    (await images.imageStatus({ image: specOf(id) })).image !== null
  const stallMs = settings.imagePullProgressTimeoutMs
  return new ImagePuller({
    ...env,
    maxParallel: parallelPulls(settings),
    pullQps: settings.registryPullQps,
    pullBurst: settings.registryBurst,
    checkRoom,
    watch: content && new PullWatch({ content, isPresent, clock, stallMs, checkRoom }),
    onPulling,
    wentBack,
  })
}
