import { errorMessage } from '../../base/errors.ts'
import type { PodAction } from '../../decide/plan/pod-action.ts'
import { containerHold, nextImageHold, previousImageHold } from '../../decide/plan/hold.ts'
import type { Hold, HoldKey } from '../../decide/plan/hold.ts'
import { selectVolumeImages } from '../../pod/defaults/image-volumes.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import { ImageError } from '../images/image-error.ts'
import type { PresentImage } from '../images/image-request.ts'
import { recordEvent } from './pod-context.ts'
import type { PodContext, SandboxInUse } from './pod-context.ts'

type StartAction = Extract<PodAction, { kind: 'start-container' }>

interface FetchOptions {
  readonly sandbox: SandboxInUse | undefined
  /** Ends the wait for it. */
  readonly signal: AbortSignal
  /** What is held up where it can't be had. */
  readonly holdKey: HoldKey
}

type WantedImage = Pick<ContainerSpec, 'name' | 'image' | 'imagePullPolicy'>

/** Has all images at hand that this start takes; gives the container's own. Where one is missing, a hold says why. */
export async function fetchImages(
  ctx: PodContext,
  sandbox: SandboxInUse,
  { spec, awaitedImage }: StartAction,
): Promise<PresentImage | undefined> {
  const options = { sandbox, signal: ctx.manifestSignal, holdKey: containerHold(spec.name) }
  // From here on this start sees to it; a pull in flight goes on.
  if (awaitedImage === undefined) ctx.endFetch(spec.name)
  const image = await (awaitedImage === undefined
    ? fetchImage(ctx, spec, options)
    : findPreviousImage(ctx, spec, awaitedImage))
  return image !== undefined && (await fetchVolumeImages(ctx, spec, options)) ? image : undefined
}

/** As long as a start that failed for a reason of ours isn't tried again. */
const retryMs = 10_000

/** Begins to get the images of a container that goes on meanwhile; never rejects. */
export async function fetchImagesAhead(
  ctx: PodContext,
  spec: ContainerSpec,
  signal: AbortSignal,
): Promise<void> {
  const holdKey = nextImageHold(spec.name)
  const options = { sandbox: undefined, signal, holdKey }
  try {
    if (!(await fetchVolumeImages(ctx, spec, options))) return
    const image = await fetchImage(ctx, spec, options)
    if (image === undefined || signal.aborted) return
    for (const volumeImage of selectVolumeImages(ctx.pod.spec.volumes, spec)) ctx.noteFresh(volumeImage.image)
    ctx.hold(holdKey, undefined)
    // It tells that all is there.
    ctx.noteFresh(spec.image)
  } catch (error) {
    if (signal.aborted) return
    const waiting = { reason: 'ErrImagePull', message: errorMessage(error) }
    ctx.hold(holdKey, { untilMs: ctx.clock.wallMs() + retryMs, waiting })
  }
}

async function fetchVolumeImages(
  ctx: PodContext,
  spec: ContainerSpec,
  options: FetchOptions,
): Promise<boolean> {
  for (const volumeImage of selectVolumeImages(ctx.pod.spec.volumes, spec))
    if ((await ensureImage(ctx, volumeImage, options)) === undefined) return false
  return true
}

async function fetchImage(
  ctx: PodContext,
  spec: ContainerSpec,
  options: FetchOptions,
): Promise<PresentImage | undefined> {
  return ensureImage(ctx, spec, options, { image: spec.image })
}

/** @param cause what the hold tells of why the container waits, where the image is its own */
async function ensureImage(
  ctx: PodContext,
  wanted: WantedImage,
  { sandbox, signal, holdKey }: FetchOptions,
  cause: Pick<Hold, 'image'> = {},
): Promise<PresentImage | undefined> {
  const found = ctx.foreseen.get(wanted.image)
  // It holds for one start only.
  ctx.foreseen.delete(wanted.image)
  try {
    return await ctx.images.ensure({
      pod: ctx.ref,
      container: wanted,
      found,
      fresh: ctx.takeFresh(wanted.image),
      sandboxConfig: sandbox?.config,
      signal,
    })
  } catch (error) {
    if (signal.aborted) throw signal.reason
    if (!(error instanceof ImageError)) throw error
    const waiting = { reason: error.reason, message: error.message }
    ctx.hold(holdKey, { untilMs: error.retryAtMs, waiting, ...cause })
    return undefined
  }
}

/** When one that is not on the machine is looked for again, for the archive it came from may be imported. */
const previousGoneMs = 60_000

/** The image that the container had, if it is on this machine still. */
async function findPreviousImage(
  ctx: PodContext,
  spec: ContainerSpec,
  awaitedImage: string,
): Promise<PresentImage | undefined> {
  const image = await findImage(ctx, spec)
  if (image instanceof ImageError) {
    const waiting = { reason: image.reason, message: image.message }
    ctx.hold(previousImageHold(spec.name), { untilMs: image.retryAtMs, waiting })
    return undefined
  }
  const message = `Error: the container runs again with the image it had, "${spec.image}", until "${awaitedImage}" can be had`
  recordEvent(ctx, { type: 'Warning', reason: 'Failed', message, container: spec.name })
  return image
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
