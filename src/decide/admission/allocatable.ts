import type { ResourceList } from '../../pod/schema/pod-resources.ts'
import { quantityMilliValue, quantityValue } from '../../pod/values/quantity.ts'

/** The machine's capacity. */
export interface HostCapacity {
  readonly cpus: number
  readonly memoryBytes: number
  /** Set aside by the kernel, by the size of a page as Kubernetes names it (`2Mi`), in bytes. */
  readonly hugePagesBytes: ReadonlyMap<string, number>
}

/**
 * What all pods together may request: the machine without what is kept for the system and for podd
 * itself (`pkg/kubelet/cm/node_container_manager_linux.go`, 1.36). Huge pages are no memory for anything
 * else.
 */
export function computeAllocatable(
  capacity: HostCapacity,
  reserved: readonly ResourceList[],
): ResourceList & { readonly cpu: string; readonly memory: string } {
  const total = (name: string, count: (quantity: string) => number): number =>
    reserved.reduce((sum, list) => sum + count(list[name] ?? '0'), 0)
  const milliCpu = capacity.cpus * 1000 - total('cpu', quantityMilliValue)
  const hugePages = [...capacity.hugePagesBytes]
  const hugeBytes = hugePages.reduce((sum, [, bytes]) => sum + bytes, 0)
  const memoryBytes = capacity.memoryBytes - hugeBytes - total('memory', quantityValue)
  return {
    ...Object.fromEntries(hugePages.map(([size, bytes]) => [`hugepages-${size}`, String(bytes)])),
    cpu: `${Math.max(0, milliCpu)}m`,
    memory: String(Math.max(0, memoryBytes)),
  }
}
