import type { StarvedResource } from './judge-pressure.ts'

/** What a container uses. */
export interface ContainerConsumption {
  readonly name: string
  readonly memoryBytes: number | undefined
  /** Its writable layer and its logs. */
  readonly diskBytes: number | undefined
  readonly requests: Readonly<Partial<Record<'memory' | 'ephemeral-storage', number>>>
}

/** A pod that may be evicted, with its usage. Undefined where it could not be measured. */
export interface EvictionCandidate {
  /** `namespace/name` */
  readonly key: string
  readonly name: string
  readonly priority: number
  /** Whether its priority is at least that of `system-cluster-critical`: it is never evicted. */
  readonly isCritical: boolean
  readonly used: Readonly<Partial<Record<StarvedResource, number>>>
  /** Of the whole pod; 0 where nothing is requested. */
  readonly requested: Readonly<Partial<Record<'memory' | 'ephemeral-storage', number>>>
  /** Whether the pod requests memory at the pod level. */
  readonly podLevelMemory: boolean
  readonly containers: readonly ContainerConsumption[]
}

/** The least usage of a resource for which an eviction helps. */
const worthwhile: Readonly<Record<StarvedResource, number>> = {
  memory: 1,
  'ephemeral-storage': 1024 ** 2,
  inodes: 100,
  pids: 1,
}

/**
 * Pods in the order in which they are evicted: those over their requests first, then by priority, then by how far they
 * are over their requests (`pkg/kubelet/eviction/helpers.go`, rankMemoryPressure, rankDiskPressureFunc and
 * rankPIDPressure, 1.36). Critical pods are left out; so are, unlike in the kubelet, pods that use almost nothing of
 * the resource, as their eviction would free nothing.
 */
export function rankForEviction(
  candidates: readonly EvictionCandidate[],
  resource: StarvedResource,
): readonly EvictionCandidate[] {
  const excess = (candidate: EvictionCandidate): number =>
    (candidate.used[resource] ?? Infinity) - requestOf(candidate, resource)
  return candidates
    .filter(({ isCritical, used }) => !isCritical && (used[resource] ?? Infinity) >= worthwhile[resource])
    .toSorted((one, other) => {
      const overOne = resource !== 'pids' && excess(one) > 0
      const overOther = resource !== 'pids' && excess(other) > 0
      if (overOne !== overOther) return overOne ? -1 : 1
      if (one.priority !== other.priority) return one.priority - other.priority
      const [excessOne, excessOther] = [excess(one), excess(other)]
      // For two pods that could not be measured the difference is NaN.
      if (excessOne !== excessOther) return excessOther - excessOne
      return one.key.localeCompare(other.key, 'en')
    })
}

/** The kubelet counts inodes beyond 0, since no pod can request them. */
function requestOf({ requested }: EvictionCandidate, resource: StarvedResource): number {
  return resource === 'memory' || resource === 'ephemeral-storage' ? (requested[resource] ?? 0) : 0
}
