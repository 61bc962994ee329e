import type { ContainerSpec } from '../pod/schema/container-schema.ts'
import type { ContainerView } from './container-view.ts'
import type { Hold, PodFacts } from './pod-facts.ts'

/** The key of a hold on a container's next image, which could not be had while the container runs on. No container can be called so. */
export function nextImageHold(containerName: string): string {
  return `${containerName} next`
}

/** The key of a hold on the image that a container had: that can't be had either. */
export function previousImageHold(containerName: string): string {
  return `${containerName} previous`
}

/**
 * What a container that has ended goes on as while the image isn't at hand that its changed manifest names: itself, with
 * the image it had. So does one that ran when its manifest was changed, and any other as soon as the new image can't be had.
 * Undefined where it had no other, or that is gone as well. (The kubelet leaves it down until the new image is
 * there. Where nobody is at hand, what ran is worth more than what can't.)
 *
 * @param holdOn what holds a container, or what else bears a key, up at this moment
 */
export function withPreviousImage(
  facts: Pick<PodFacts, 'history' | 'imageReady'>,
  holdOn: (key: string) => Hold | undefined,
  spec: ContainerSpec,
  view: ContainerView,
): ContainerSpec | undefined {
  const { name, image } = spec
  if (view.kind !== 'ended' || view.end.image === image || facts.imageReady(spec)) return undefined
  if (holdOn(previousImageHold(name)) !== undefined) return undefined
  const hold = holdOn(name)
  const goesOn = hold === undefined ? facts.history[name]?.awaitedImage === image : hold.image === image
  return goesOn ? { ...spec, image: view.end.image, imagePullPolicy: 'Never' } : undefined
}
