import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import { ImageError } from '../images/image-error.ts'
import type { PresentImage } from '../images/image-request.ts'
import type { PodContext } from './pod-context.ts'
import { recordEvent } from './pod-context.ts'

/** When an image is looked for again that an archive shall bring; its import itself is heard of at once. */
const retryMs = 2000

/**
 * Throws ImageError where an image is not there, and an archive that brings it is about to be imported. Nobody waits
 * under `Always`: that asks the registry in any case.
 * @param found the image, looked for beforehand
 */
export async function checkAwaitedArchive(
  ctx: PodContext,
  container: Pick<ContainerSpec, 'name' | 'image' | 'imagePullPolicy'>,
  found: Promise<PresentImage | undefined> | undefined,
): Promise<void> {
  const message =
    container.imagePullPolicy === 'Always' ? undefined : ctx.host.archives?.awaited(container.image)
  if (message === undefined) return
  if (((await found) ?? (await ctx.images.find({ pod: ctx.ref, container }))) !== undefined) return
  recordEvent(ctx, { type: 'Normal', reason: 'AwaitingImport', message, container: container.name })
  throw new ImageError('AwaitingImport', message, ctx.clock.wallMs() + retryMs)
}
