/** The priority of system-cluster-critical (`pkg/apis/scheduling/types.go`, SystemCriticalPriority, 1.36). */
export const clusterCriticalPriority = 2_000_000_000
/** The priority of system-node-critical, from which on a pod is spared like a guaranteed one. */
export const nodeCriticalPriority = 2_000_001_000

/** Whether a pod is critical by its priority (`pkg/kubelet/types/pod_update.go`, IsCriticalPodBasedOnPriority, 1.36). */
export function isCritical({ priority }: { readonly priority?: number | undefined }): boolean {
  return (priority ?? 0) >= clusterCriticalPriority
}
