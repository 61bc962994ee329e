import { errorMessage } from '../../base/errors.ts'
import type * as cri from '../../cri-types/cri-v1.ts'
import { containerRetry, nextImageRetry, previousImageRetry } from '../../decide/plan/backoff.ts'
import type { Retry, RetryKey } from '../../decide/plan/backoff.ts'
import { pullSecretsOf } from '../../pod/objects/local-object.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import { selectVolumeImages } from '../../pod/schema/default-pod.ts'
import { ImageError } from '../images/image-request.ts'
import type { PresentImage } from '../images/image-request.ts'
import { tell, warn } from './env.ts'
import type { PodEnv } from './env.ts'
import { retryLater, makeRetry } from './pass.ts'
import type { Pass, StartAction } from './pass.ts'

/** What images are fetched with. */
interface Fetch {
  /** Of the sandbox that the container will be in, where there is one. */
  readonly sandboxConfig: cri.Sent<cri.PodSandboxConfig> | undefined
  /** Ends the wait for it. */
  readonly signal: AbortSignal
  /** What is put off where an image is unavailable. */
  readonly retryKey: RetryKey
  /** Fresh images that were used so far. */
  readonly used: string[]
}

/** Why an image is unavailable, and until when it isn't asked for again. */
interface Unavailable {
  readonly kind: 'unavailable'
  readonly key: RetryKey
  readonly retry: Retry
}
type Fetched = { readonly kind: 'present'; readonly image: PresentImage } | Unavailable

type WantedImage = Pick<ContainerSpec, 'name' | 'image' | 'imagePullPolicy'>

/** When an image is looked for again that an archive shall bring; its import itself is heard of at once. */
const archiveRetryMs = 2000

/**
 * Ensures all images that this start needs.
 * @returns the container's own, undefined where one is unavailable, which is put off; and the fresh ones that were used
 */
export async function fetchImages(
  env: PodEnv,
  pass: Pass,
  { spec, awaitedImage }: StartAction,
  sandboxConfig: cri.Sent<cri.PodSandboxConfig>,
): Promise<{
  readonly image: PresentImage | undefined
  /** Why one of them is not there: the reason that the container waits with. */
  readonly failure: string | undefined
  readonly used: readonly string[]
}> {
  const signal = pass.signals.manifest
  const retryKey = containerRetry(spec.name)
  const fetch: Fetch = { sandboxConfig, signal, retryKey, used: [] }
  const own = await (awaitedImage === undefined
    ? ensureOwnImage(env, pass, spec, fetch)
    : findPreviousImage(env, pass, spec, awaitedImage))
  const failed = own.kind === 'unavailable' ? own : await ensureVolumeImages(env, pass, spec, fetch)
  if (failed !== undefined) retryLater(env, pass, failed.key, failed.retry)
  return {
    image: failed === undefined && own.kind === 'present' ? own.image : undefined,
    failure: failed?.retry.waiting.reason,
    used: fetch.used,
  }
}

/** Begins to fetch the images that a container which keeps running needs for its next start. */
export function fetchAhead(env: PodEnv, pass: Pass, spec: ContainerSpec): void {
  const { state } = pass
  state.aheadFetches.begin(spec.name, async (signal) => {
    const failed = await ensureAhead(env, pass, spec, signal)
    // What was cancelled meanwhile counts for nothing.
    if (signal.aborted) return
    if (failed !== undefined) return state.retryLater(failed.key, failed.retry)
    const volumeImages = selectVolumeImages(pass.pod.spec.volumes, spec).map(({ image }) => image)
    state.noteFetched(spec.name, [...volumeImages, spec.image])
  })
}

/** Gives when they are looked for again where that failed; never rejects. */
async function ensureAhead(
  env: PodEnv,
  pass: Pass,
  spec: ContainerSpec,
  signal: AbortSignal,
): Promise<Unavailable | undefined> {
  const retryKey = nextImageRetry(spec.name)
  const fetch: Fetch = { sandboxConfig: undefined, signal, retryKey, used: [] }
  try {
    const failed = await ensureVolumeImages(env, pass, spec, fetch)
    const own = failed ?? (await ensureOwnImage(env, pass, spec, fetch))
    return own.kind === 'unavailable' ? own : undefined
  } catch (error) {
    const retry = makeRetry(env, { reason: 'ErrImagePull', message: errorMessage(error) })
    return { kind: 'unavailable', key: retryKey, retry }
  }
}

async function ensureVolumeImages(
  env: PodEnv,
  pass: Pass,
  spec: ContainerSpec,
  fetch: Fetch,
): Promise<Unavailable | undefined> {
  for (const volumeImage of selectVolumeImages(pass.pod.spec.volumes, spec)) {
    const fetched = await ensureImage(env, pass, volumeImage, fetch)
    if (fetched.kind === 'unavailable') return fetched
  }
  return undefined
}

/** The container's own image; its wait names the image. */
async function ensureOwnImage(env: PodEnv, pass: Pass, spec: ContainerSpec, fetch: Fetch): Promise<Fetched> {
  const fetched = await ensureImage(env, pass, spec, fetch)
  // What is about to be imported is waited for, also by a container that had another image.
  if (fetched.kind !== 'unavailable' || fetched.retry.waiting.reason === 'AwaitingImport') return fetched
  return { ...fetched, retry: { ...fetched.retry, image: spec.image } }
}

async function ensureImage(
  env: PodEnv,
  pass: Pass,
  wanted: WantedImage,
  { sandboxConfig, signal, retryKey, used }: Fetch,
): Promise<Fetched> {
  const fresh = pass.state.fresh.has(wanted.image) && !used.includes(wanted.image)
  if (fresh) used.push(wanted.image)
  try {
    await checkAwaitedArchive(env, pass, wanted)
    const image = await env.images.ensure({
      pod: pass.ref,
      container: wanted,
      fresh,
      secrets: pullSecretsOf(pass.pod, pass.record.source),
      sandboxConfig,
      signal,
    })
    return { kind: 'present', image }
  } catch (error) {
    if (signal.aborted) throw signal.reason
    if (!(error instanceof ImageError)) throw error
    return retryAfter(error, retryKey)
  }
}

/** When one that is not on the machine is looked for again, for the archive it came from may be imported. */
const previousGoneMs = 60_000

/** The image that the container had, if it is on this machine still. */
async function findPreviousImage(
  env: PodEnv,
  pass: Pass,
  spec: ContainerSpec,
  awaitedImage: string,
): Promise<Fetched> {
  let image: PresentImage | undefined
  try {
    image = await env.images.find({ pod: pass.ref, container: spec })
    if (image === undefined)
      throw new ImageError(
        'ErrImageNeverPull',
        `${spec.image} is not on this machine`,
        env.clock.wallMs() + previousGoneMs,
      )
  } catch (error) {
    if (error instanceof ImageError) return retryAfter(error, previousImageRetry(spec.name))
    throw error
  }
  const message = `Error: the container runs again with the image it had, "${spec.image}", until "${awaitedImage}" can be had`
  warn(env, pass.ref, 'Failed', message, spec.name)
  return { kind: 'present', image }
}

function retryAfter({ reason, message, retryAtMs }: ImageError, key: RetryKey): Unavailable {
  return { kind: 'unavailable', key, retry: { untilMs: retryAtMs, waiting: { reason, message } } }
}

/**
 * Throws ImageError where an image is not there, and an archive that brings it is about to be imported. Nobody waits
 * under `Always`: that asks the registry in any case.
 */
async function checkAwaitedArchive(env: PodEnv, pass: Pass, container: WantedImage): Promise<void> {
  const message = container.imagePullPolicy === 'Always' ? undefined : env.archives.awaited(container.image)
  if (message === undefined) return
  env.archives.prefer(container.image)
  if ((await env.images.find({ pod: pass.ref, container })) !== undefined) return
  tell(env, pass.ref, 'AwaitingImport', message, container.name)
  throw new ImageError('AwaitingImport', message, env.clock.wallMs() + archiveRetryMs)
}
