import type { Clock } from '../../base/clock.ts'
import { PoddError, errorMessage } from '../../base/errors.ts'
import { Semaphore, untilAborted } from '../../base/waits.ts'
import type * as cri from '../../cri-types/cri-v1.ts'
import { isCriError, specOf } from '../../runtime/cri-runtime.ts'
import type { PullCredential } from '../../decide/images/keyring.ts'
import type { UsedCredential } from '../../decide/images/pulled-record.ts'
import { toAuthConfig } from '../../decide/images/keyring.ts'
import type { ImageCredentials } from './image-credentials.ts'
import type { CheckRoom } from './image-room.ts'
import type { PullProgress, PullRequest } from './image-request.ts'
import type { PullWatch } from './pull-watch.ts'

/** What pulls need of CRI's ImageService. */
export interface PullCalls {
  pullImage(
    request: cri.PullImageRequestInput,
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<cri.PullImageResponse>
}

/** How many pulls there are at a time, and how fast they begin. */
export interface PullLimits {
  /** How many images are pulled at a time (`serializeImagePulls`, `maxParallelImagePulls`); undefined: no limit. */
  readonly maxParallel: number | undefined
  /** Pulls a second on average (`registryPullQPS`), and at once (`registryBurst`); 0: no limit. */
  readonly pullQps: number
  readonly pullBurst: number
}

export interface ImagePullsOptions extends PullLimits {
  readonly images: PullCalls
  readonly credentials: ImageCredentials
  readonly clock: Clock
  /** Tells how far pulls are, and gives up those that hang; without it the runtime alone gives up. */
  readonly watch?: PullWatch | undefined
  /** Called before each pull. */
  readonly checkRoom?: CheckRoom | undefined
}

/** A finished pull. */
export interface FinishedPull {
  /** How long it took, the waiting for its turn not included. */
  readonly durationMs: number
}

/** A pull without a waiting pod is cancelled after this: an interrupted worker may request it again at once. */
const unwantedPullMs = 10_000

/** After these the runtime may have the image after all. */
const noAnswer = ['RUNTIME_UNAVAILABLE', 'RUNTIME_TIMEOUT'] as const

/** A pull in flight, and how many wait for it. */
interface Pull {
  readonly work: Promise<FinishedPull>
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
  readonly #options: ImagePullsOptions
  readonly #turn: Semaphore
  readonly #inFlight = new Map<string, Pull>()
  #tokens: number
  #refilledAtMs: number

  constructor(options: ImagePullsOptions) {
    this.#options = options
    this.#turn = new Semaphore(options.maxParallel ?? Infinity)
    this.#tokens = options.pullBurst
    this.#refilledAtMs = options.clock.monotonicMs()
  }

  /** Resolves when the image was pulled. Throws the runtime's error, or the request's signal's reason. */
  async pull(request: PullRequest): Promise<FinishedPull> {
    const { clock, credentials } = this.#options
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
  ): Promise<FinishedPull> {
    const { checkRoom, clock, watch } = this.#options
    cancel.signal.throwIfAborted()
    const beganMs = clock.monotonicMs()
    await checkRoom?.(0, cancel.signal)
    const endWatch = watch?.begin({
      image: request.image,
      onProgress: tell,
      giveUp: (error) => cancel.abort(error),
    })
    try {
      await this.#recorded(request.image, cancel.signal, () =>
        this.#tryEach(request, candidates, cancel.signal),
      )
      return { durationMs: clock.monotonicMs() - beganMs }
    } finally {
      endWatch?.()
    }
  }

  /** Records a pull before it begins and when it has ended, whoever still waits for it. */
  async #recorded(image: string, signal: AbortSignal, work: () => Promise<UsedCredential>): Promise<void> {
    const { credentials } = this.#options
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
        await this.#options.images.pullImage(
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
    const { clock, pullBurst, pullQps } = this.#options
    if (pullQps <= 0) return
    const nowMs = clock.monotonicMs()
    this.#tokens = Math.min(pullBurst, this.#tokens + ((nowMs - this.#refilledAtMs) / 1000) * pullQps)
    this.#refilledAtMs = nowMs
    this.#tokens -= 1
    if (this.#tokens >= 0) return
    try {
      await clock.sleep((-this.#tokens / pullQps) * 1000, signal)
    } catch (error) {
      this.#tokens += 1
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
