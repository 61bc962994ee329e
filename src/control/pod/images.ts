import { errorMessage } from '../../base/errors.ts'
import { containerBackoff, nextImageBackoff, previousImageBackoff } from '../../decide/plan/backoff.ts'
import type { BackoffKey } from '../../decide/plan/backoff.ts'
import type { PodAction } from '../../decide/plan/pod-action.ts'
import { pullSecretsOf } from '../../pod/objects/local-object.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import { selectVolumeImages } from '../../pod/schema/default-pod.ts'
import { parseImageName } from '../../pod/values/image-name.ts'
import { ImageError } from '../images/image-request.ts'
import type { PresentImage } from '../images/image-request.ts'
import { recordEvent } from './context.ts'
import type { ActionOutcome, PodContext, SandboxInUse } from './context.ts'

type StartAction = Extract<PodAction, { kind: 'start-container' }>

/** Images that are about to be needed, looked for beforehand; each serves one start. */
export type ForeseenImages = Map<string, Promise<PresentImage | undefined>>

/** Asks for the images of the containers to be started, while their sandbox is created. */
export function foreseeImages(ctx: PodContext, actions: readonly PodAction[]): ForeseenImages {
  const foreseen: ForeseenImages = new Map()
  for (const action of actions) {
    if (action.kind !== 'start-container') continue
    const { image } = action.spec
    if (foreseen.has(image) || parseImageName(image) === undefined) continue
    const found = ctx.images.find({ pod: ctx.ref, container: action.spec })
    // The start that needs it handles a failure.
    found.catch(() => undefined)
    foreseen.set(image, found)
  }
  return foreseen
}

/** What images are fetched with. */
export interface FetchOptions {
  readonly sandbox: SandboxInUse | undefined
  readonly foreseen: ForeseenImages
}

interface Fetch extends FetchOptions {
  /** Ends the wait for it. */
  readonly signal: AbortSignal
  /** What is put off where an image is unavailable. */
  readonly backoffKey: BackoffKey
  /** Fresh images that were used so far. */
  readonly used: string[]
}

type BackedOff = Extract<ActionOutcome, { kind: 'backoff' }>
type Fetched = { readonly kind: 'present'; readonly image: PresentImage } | BackedOff

type WantedImage = Pick<ContainerSpec, 'name' | 'image' | 'imagePullPolicy'>

/** When an image is looked for again that an archive shall bring; its import itself is heard of at once. */
const archiveRetryMs = 2000

/** Ensures all images that this start needs; `fetched` is the container's own, or a backoff that says why one is unavailable. */
export async function fetchImages(
  ctx: PodContext,
  { spec, awaitedImage }: StartAction,
  options: FetchOptions,
): Promise<{ readonly fetched: Fetched; readonly used: readonly string[] }> {
  const signal = ctx.signals.manifest
  const fetch: Fetch = { ...options, signal, backoffKey: containerBackoff(spec.name), used: [] }
  const own = await (awaitedImage === undefined
    ? ensureOwnImage(ctx, spec, fetch)
    : findPreviousImage(ctx, spec, awaitedImage))
  const failed = own.kind === 'backoff' ? own : await ensureVolumeImages(ctx, spec, fetch)
  return { fetched: failed ?? own, used: fetch.used }
}

/** As long as a start that failed for a reason of ours isn't tried again. */
const retryMs = 10_000

/** Fetches the images of a container that keeps running meanwhile; never rejects. Undefined where the signal ended it. */
export async function fetchImagesAhead(
  ctx: PodContext,
  spec: ContainerSpec,
  signal: AbortSignal,
): Promise<BackedOff | Extract<ActionOutcome, { kind: 'images-fetched' }> | undefined> {
  const backoffKey = nextImageBackoff(spec.name)
  const fetch: Fetch = { sandbox: undefined, foreseen: new Map(), signal, backoffKey, used: [] }
  try {
    const failed = await ensureVolumeImages(ctx, spec, fetch)
    const own = failed ?? (await ensureOwnImage(ctx, spec, fetch))
    if (own.kind === 'backoff') return own
    if (signal.aborted) return undefined
    const volumeImages = selectVolumeImages(ctx.pod.spec.volumes, spec).map(({ image }) => image)
    return { kind: 'images-fetched', container: spec.name, images: [...volumeImages, spec.image] }
  } catch (error) {
    if (signal.aborted) return undefined
    const waiting = { reason: 'ErrImagePull', message: errorMessage(error) }
    return { kind: 'backoff', key: backoffKey, backoff: { untilMs: ctx.clock.wallMs() + retryMs, waiting } }
  }
}

async function ensureVolumeImages(
  ctx: PodContext,
  spec: ContainerSpec,
  fetch: Fetch,
): Promise<BackedOff | undefined> {
  for (const volumeImage of selectVolumeImages(ctx.pod.spec.volumes, spec)) {
    const fetched = await ensureImage(ctx, volumeImage, fetch)
    if (fetched.kind === 'backoff') return fetched
  }
  return undefined
}

/** The container's own image; its backoff names the image. */
async function ensureOwnImage(ctx: PodContext, spec: ContainerSpec, fetch: Fetch): Promise<Fetched> {
  const fetched = await ensureImage(ctx, spec, fetch)
  // What is about to be imported is waited for, also by a container that had another image.
  if (fetched.kind !== 'backoff' || fetched.backoff.waiting.reason === 'AwaitingImport') return fetched
  return { ...fetched, backoff: { ...fetched.backoff, image: spec.image } }
}

async function ensureImage(
  ctx: PodContext,
  wanted: WantedImage,
  { sandbox, foreseen, signal, backoffKey, used }: Fetch,
): Promise<Fetched> {
  const found = foreseen.get(wanted.image)
  foreseen.delete(wanted.image)
  const fresh = ctx.fresh.has(wanted.image) && !used.includes(wanted.image)
  if (fresh) used.push(wanted.image)
  try {
    await checkAwaitedArchive(ctx, wanted, found)
    const image = await ctx.images.ensure({
      pod: ctx.ref,
      container: wanted,
      found,
      fresh,
      secrets: pullSecretsOf(ctx.pod, ctx.record.source),
      sandboxConfig: sandbox?.config,
      signal,
    })
    return { kind: 'present', image }
  } catch (error) {
    if (signal.aborted) throw signal.reason
    if (!(error instanceof ImageError)) throw error
    return backoffAfter(error, backoffKey)
  }
}

/** When one that is not on the machine is looked for again, for the archive it came from may be imported. */
const previousGoneMs = 60_000

/** The image that the container had, if it is on this machine still. */
async function findPreviousImage(
  ctx: PodContext,
  spec: ContainerSpec,
  awaitedImage: string,
): Promise<Fetched> {
  const image = await findImage(ctx, spec)
  if (image instanceof ImageError) return backoffAfter(image, previousImageBackoff(spec.name))
  const message = `Error: the container runs again with the image it had, "${spec.image}", until "${awaitedImage}" can be had`
  recordEvent(ctx, { type: 'Warning', reason: 'Failed', message, container: spec.name })
  return { kind: 'present', image }
}

async function findImage(ctx: PodContext, spec: ContainerSpec): Promise<PresentImage | ImageError> {
  try {
    const image = await ctx.images.find({ pod: ctx.ref, container: spec })
    const retryAtMs = ctx.clock.wallMs() + previousGoneMs
    return image ?? new ImageError('ErrImageNeverPull', `${spec.image} is not on this machine`, retryAtMs)
  } catch (error) {
    if (error instanceof ImageError) return error
    throw error
  }
}

function backoffAfter({ reason, message, retryAtMs }: ImageError, key: BackoffKey): BackedOff {
  return { kind: 'backoff', key, backoff: { untilMs: retryAtMs, waiting: { reason, message } } }
}

/**
 * Throws ImageError where an image is not there, and an archive that brings it is about to be imported. Nobody waits
 * under `Always`: that asks the registry in any case.
 * @param found the image, looked for beforehand
 */
async function checkAwaitedArchive(
  ctx: PodContext,
  container: WantedImage,
  found: Promise<PresentImage | undefined> | undefined,
): Promise<void> {
  const message =
    container.imagePullPolicy === 'Always' ? undefined : ctx.host.archives?.awaited(container.image)
  if (message === undefined) return
  ctx.host.archives?.prefer(container.image)
  if (((await found) ?? (await ctx.images.find({ pod: ctx.ref, container }))) !== undefined) return
  recordEvent(ctx, { type: 'Normal', reason: 'AwaitingImport', message, container: container.name })
  throw new ImageError('AwaitingImport', message, ctx.clock.wallMs() + archiveRetryMs)
}
