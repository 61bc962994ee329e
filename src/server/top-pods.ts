import type { PodObject } from '../api/objects.ts'
import type { PodMetrics, PodMetricsList } from '../api/pod-metrics.ts'
import { formatTime } from '../base/clock.ts'
import type { ContainerUsage } from '../pod/state/container-usage.ts'

/** What the containers of these pods use; pods none of whose containers run are left out, as metrics-server does. */
export function listPodMetrics(pods: readonly PodObject[], usage: readonly ContainerUsage[]): PodMetricsList {
  const items = pods.flatMap((pod): PodMetrics[] => {
    const own = usage.filter(({ uid }) => uid === pod.metadata.uid)
    const [first] = own
    if (first === undefined) return []
    const { name, namespace, creationTimestamp } = pod.metadata
    return [
      {
        apiVersion: 'metrics.k8s.io/v1beta1',
        kind: 'PodMetrics',
        metadata: { name, namespace, creationTimestamp },
        timestamp: formatTime(first.atMs),
        window: `${first.windowMs / 1000}s`,
        containers: own.map(({ container, cpuNanoCores, memoryBytes }) => ({
          name: container,
          usage: { cpu: `${cpuNanoCores}n`, memory: `${Math.ceil(memoryBytes / 1024)}Ki` },
        })),
      },
    ]
  })
  return { apiVersion: 'metrics.k8s.io/v1beta1', kind: 'PodMetricsList', items }
}
