import type { ContainerSpec } from '../pod/schema/container-schema.ts'
import type { ContainerView } from './container-view.ts'
import type { Hold } from './pod-facts.ts'

/** The key of a hold on the image that a container had: that can't be had either. No container can be called so. */
export function previousImageHold(containerName: string): string {
  return `${containerName} previous`
}

/**
 * What a container that has ended goes on as while the image can't be had that its changed manifest names: itself, with
 * the image it had. Undefined where it had no other, or that is gone as well. (The kubelet leaves it down until
 * the new image is there. Where nobody is at hand, what ran is worth more than what can't.)
 *
 * @param holdOn what holds a container, or what else bears a key, up at this moment
 */
export function withPreviousImage(
  holdOn: (key: string) => Hold | undefined,
  spec: ContainerSpec,
  view: ContainerView,
): ContainerSpec | undefined {
  if (view.kind !== 'ended' || view.end.image === spec.image) return undefined
  if (holdOn(spec.name)?.image !== spec.image) return undefined
  if (holdOn(previousImageHold(spec.name)) !== undefined) return undefined
  return { ...spec, image: view.end.image, imagePullPolicy: 'Never' }
}
