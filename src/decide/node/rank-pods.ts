import type { StarvedResource } from './judge-pressure.ts'

/** What a container uses. */
export interface ContainerConsumption {
  readonly name: string
  readonly memoryBytes: number | undefined
  /** Its writable layer and its logs. */
  readonly diskBytes: number | undefined
  readonly requests: Readonly<Partial<Record<'memory' | 'ephemeral-storage', number>>>
}

/** A pod that may be evicted, and what it uses. Undefined where it could not be measured. */
export interface EvictionCandidate {
  /** `namespace/name` */
  readonly key: string
  readonly name: string
  readonly priority: number
  /** Its priority is that of `system-cluster-critical` at least: it is never evicted. */
  readonly isCritical: boolean
  readonly used: Readonly<Partial<Record<StarvedResource, number>>>
  /** Of the whole pod; 0 where nothing is requested. */
  readonly requested: Readonly<Partial<Record<'memory' | 'ephemeral-storage', number>>>
  /** The pod asks for memory as a whole. */
  readonly podLevelMemory: boolean
  readonly containers: readonly ContainerConsumption[]
}

/** What a pod has to use of a resource for its end to be of any help. */
const worthwhile: Readonly<Record<StarvedResource, number>> = {
  memory: 1,
  'ephemeral-storage': 1024 ** 2,
  inodes: 100,
  pids: 1,
}

/**
 * Pods in the order in which they are evicted: those over their requests first, then by priority, then by how far they
 * are over their requests (`pkg/kubelet/eviction/helpers.go`, rankMemoryPressure, rankDiskPressureFunc and
 * rankPIDPressure, 1.36). Critical pods are left out; so is, unlike in the kubelet, a pod that uses next to nothing of
 * what is short, for its end would free nothing.
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
      // Of two that could not be measured the difference is no number.
      if (excessOne !== excessOther) return excessOther - excessOne
      return one.key.localeCompare(other.key, 'en')
    })
}

/** The kubelet counts inodes beyond 0, since no pod can request them. */
function requestOf({ requested }: EvictionCandidate, resource: StarvedResource): number {
  return resource === 'memory' || resource === 'ephemeral-storage' ? (requested[resource] ?? 0) : 0
}
