/** The priority of system-cluster-critical (`pkg/apis/scheduling/types.go`, SystemCriticalPriority, 1.36). */
export const clusterCriticalPriority = 2_000_000_000
/** The priority of system-node-critical, from which on a pod is spared like a guaranteed one. */
export const nodeCriticalPriority = 2_000_001_000

/** Those that every cluster has (`pkg/apis/scheduling/types.go`, 1.36). */
export const systemPriorities: ReadonlyMap<string, { readonly value: number; readonly description: string }> =
  new Map([
    [
      'system-node-critical',
      { value: nodeCriticalPriority, description: 'For critical pods that must stay on their node.' },
    ],
    [
      'system-cluster-critical',
      { value: clusterCriticalPriority, description: 'For critical pods that may run on any node.' },
    ],
  ])

/** Whether a pod is critical by its priority (`pkg/kubelet/types/pod_update.go`, IsCriticalPodBasedOnPriority, 1.36). */
export function isCritical({ priority }: { readonly priority?: number | undefined }): boolean {
  return (priority ?? 0) >= clusterCriticalPriority
}
