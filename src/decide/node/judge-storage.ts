import type { PodSpec } from '../../pod/schema/pod-schema.ts'
import { podLimits, isCritical } from '../../pod/schema/pod-resources.ts'
import { quantityValue } from '../../pod/values/quantity.ts'

/** A pod's disk usage, in bytes. */
export interface StorageUse {
  /** Its logs, its emptyDirs on disk and what its containers have written to their layers. */
  readonly podBytes: number
  /** The usage of each container's logs and layer, by name. */
  readonly containers: ReadonlyMap<string, number>
}

const resource = 'ephemeral-storage'

/** Whether a pod has a limit of ephemeral storage, and may be evicted for it. */
export function isStorageLimited(spec: PodSpec): boolean {
  return !isCritical(spec) && podLimits(spec, 'with-overhead')[resource] !== undefined
}

/**
 * The eviction message of a pod that exceeds its own or a container's limit of disk usage; undefined where none does
 * (`pkg/kubelet/eviction/eviction_manager.go`, podEphemeralStorageLimitEviction and
 * containerEphemeralStorageLimitEviction, 1.36).
 */
export function judgeStorage(spec: PodSpec, { podBytes, containers }: StorageUse): string | undefined {
  const total = podLimits(spec, 'with-overhead')[resource]
  if (total !== undefined && podBytes > quantityValue(total))
    return `Pod ephemeral local storage usage exceeds the total limit of containers ${total}. `
  for (const { name, resources } of spec.containers) {
    const limit = resources.limits[resource]
    const limitBytes = limit === undefined ? 0 : quantityValue(limit)
    if (limitBytes <= 0 || (containers.get(name) ?? 0) <= limitBytes) continue
    return `Container ${name} exceeded its local ephemeral storage limit "${limit}". `
  }
  return undefined
}
