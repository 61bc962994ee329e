import type { PodAction } from '../decide/pod-action.ts'
import { previousImageHold } from '../decide/previous-image.ts'
import { selectVolumeImages } from '../pod/image-volumes.ts'
import type { ContainerSpec } from '../pod/schema/container-schema.ts'
import { ImageError } from './image-puller.ts'
import type { PresentImage } from './image-puller.ts'
import { recordEvent } from './pod-context.ts'
import type { PodContext, SandboxInUse } from './pod-context.ts'

type StartAction = Extract<PodAction, { kind: 'start-container' }>

/** Has all images at hand that this start takes; gives the container's own. Where one is missing, a hold says why. */
export async function fetchImages(
  ctx: PodContext,
  sandbox: SandboxInUse,
  { spec, missingImage }: StartAction,
): Promise<PresentImage | undefined> {
  if (missingImage !== undefined) return fetchPreviousImage(ctx, sandbox, spec, missingImage)
  const image = await fetchImage(ctx, sandbox, spec)
  return image !== undefined && (await fetchVolumeImages(ctx, sandbox, spec)) ? image : undefined
}

/** Makes sure of the images of a container that runs still, before it is stopped to be made anew. */
export async function fetchImagesAhead(ctx: PodContext, spec: ContainerSpec): Promise<void> {
  if (!(await fetchVolumeImages(ctx, undefined, spec))) return
  for (const { image } of selectVolumeImages(ctx.pod.spec.volumes, spec)) ctx.noteFresh(image)
  // Last, for it tells that all is there.
  if ((await fetchImage(ctx, undefined, spec)) !== undefined) ctx.noteFresh(spec.image)
}

async function fetchVolumeImages(
  ctx: PodContext,
  sandbox: SandboxInUse | undefined,
  spec: ContainerSpec,
): Promise<boolean> {
  for (const volumeImage of selectVolumeImages(ctx.pod.spec.volumes, spec))
    if ((await fetchImage(ctx, sandbox, volumeImage)) === undefined) return false
  return true
}

async function fetchImage(
  ctx: PodContext,
  sandbox: SandboxInUse | undefined,
  spec: Pick<ContainerSpec, 'name' | 'image' | 'imagePullPolicy'>,
): Promise<PresentImage | undefined> {
  const found = ctx.foreseen.get(spec.image)
  // It holds for one start only.
  ctx.foreseen.delete(spec.image)
  try {
    return await ctx.images.ensure({
      pod: ctx.ref,
      container: spec,
      found,
      fresh: ctx.takeFresh(spec.image),
      sandboxConfig: sandbox?.config,
      signal: ctx.manifestSignal,
    })
  } catch (error) {
    if (!(error instanceof ImageError)) throw error
    const waiting = { reason: error.code, message: error.message }
    ctx.hold(spec.name, { untilMs: error.retryAtMs, waiting, image: spec.image })
    return undefined
  }
}

/** As long as the longest hold on the image that is missing: when that is tried again, so is this one. */
const previousGoneMs = 300_000

/** The image that the container had, if it is on this machine still. */
async function fetchPreviousImage(
  ctx: PodContext,
  sandbox: SandboxInUse,
  spec: ContainerSpec,
  missingImage: string,
): Promise<PresentImage | undefined> {
  const image = await findQuietly(ctx, spec)
  if (image === undefined || !(await fetchVolumeImages(ctx, sandbox, spec))) {
    const waiting = { reason: 'ErrImageNeverPull', message: `${spec.image} is not on this machine any more` }
    ctx.hold(previousImageHold(spec.name), { untilMs: ctx.clock.wallMs() + previousGoneMs, waiting })
    return undefined
  }
  const message = `Error: the container runs again with the image it had, "${spec.image}", until "${missingImage}" can be had`
  recordEvent(ctx, { type: 'Warning', reason: 'Failed', message, container: spec.name })
  return image
}

async function findQuietly(ctx: PodContext, spec: ContainerSpec): Promise<PresentImage | undefined> {
  try {
    return await ctx.images.find({ pod: ctx.ref, container: spec })
  } catch (error) {
    if (error instanceof ImageError) return undefined
    throw error
  }
}
