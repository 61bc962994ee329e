import { imagePullPolicyOf } from './default-pod.ts'
import type { ContainerSpec } from '../schema/container-schema.ts'
import type { VolumeSpec } from '../schema/volume-schema.ts'

/** An image that is mounted as a volume, as what is pulled for a container. */
export type VolumeImage = Pick<ContainerSpec, 'name' | 'image' | 'imagePullPolicy'>

/** The images among these volumes; with a container, only those that it mounts. */
export function selectVolumeImages(
  volumes: readonly VolumeSpec[],
  container?: Pick<ContainerSpec, 'name' | 'volumeMounts'>,
): readonly VolumeImage[] {
  const mounted = container && new Set(container.volumeMounts.map((mount) => mount.name))
  return volumes.flatMap(({ name, image }) => {
    const reference = image?.reference
    if (reference === undefined || mounted?.has(name) === false) return []
    const imagePullPolicy = image?.pullPolicy ?? imagePullPolicyOf(reference)
    return [{ name: container?.name ?? name, image: reference, imagePullPolicy }]
  })
}
