import type { PodSpec } from '../schema/pod-schema.ts'
import type { ResourceRequirements } from '../schema/container-schema.ts'
import { compareQuantities } from '../values/quantity.ts'

export type QosClass = 'Guaranteed' | 'Burstable' | 'BestEffort'

const counted = ['cpu', 'memory'] as const

/**
 * The class that decides cgroup placement, OOM score and eviction order. Ephemeral containers don't
 * count. Source: pkg/apis/core/v1/helper/qos (ComputePodQOS), 1.36.
 */
export function computeQosClass(
  spec: Pick<PodSpec, 'containers' | 'initContainers'> & { readonly resources?: ResourceRequirements },
): QosClass {
  const all =
    spec.resources === undefined
      ? [...spec.containers, ...spec.initContainers].map((container) => container.resources)
      : [spec.resources]
  const nothingAsked = all.every(({ requests, limits }) =>
    counted.every((name) => !isPositive(requests[name]) && !isPositive(limits[name])),
  )
  if (nothingAsked) return 'BestEffort'
  const allFixed = all.every(({ requests, limits }) =>
    counted.every((name) => {
      const limit = limits[name]
      return isPositive(limit) && compareQuantities(requests[name] ?? limit, limit) === 0
    }),
  )
  return allFixed ? 'Guaranteed' : 'Burstable'
}

function isPositive(text: string | undefined): text is string {
  return text !== undefined && compareQuantities(text, '0') > 0
}
