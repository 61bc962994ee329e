import type { PodObject } from '../../api/resource.ts'
import type { PodMetrics, PodMetricsList } from '../../api/usage.ts'
import { formatTime } from '../../base/clock.ts'
import type { ContainerUsage } from '../../pod/state/usage.ts'
import { ApiError } from '../requests/api-error.ts'
import { objectNotFound } from '../requests/not-found.ts'
import type { ApiReaders } from '../requests/readers.ts'
import type { Call } from '../requests/route.ts'

/**
 * The metrics of all pods, of those of a namespace, or of one pod. Throws ApiError NotFound where that one has none.
 */
export async function readPodMetrics(
  { resources, reach }: Pick<ApiReaders, 'resources' | 'reach'>,
  { names: [namespace, name], signal }: Pick<Call, 'names' | 'signal'>,
  hasLabels: (labels: Readonly<Record<string, string>>) => boolean,
): Promise<PodMetrics | PodMetricsList> {
  const all = resources.pods.reader.list()
  const pods = all
    .filter(({ metadata }) => namespace === undefined || metadata.namespace === namespace)
    .filter(({ metadata }) => name === undefined || metadata.name === name)
    .filter(({ metadata }) => hasLabels(metadata.labels ?? {}))
  if (name !== undefined && pods.length === 0)
    throw objectNotFound('pods', all, { namespace: namespace ?? '', name })
  const list = listPodMetrics(pods, await reach.usage(signal))
  if (name === undefined) return list
  const found = list.items.at(-1)
  if (found === undefined) throw new ApiError(404, `no container of pod ${name} runs`)
  return found
}

/** The usage of the containers of these pods; pods without running containers are left out, as in metrics-server. */
function listPodMetrics(pods: readonly PodObject[], usage: readonly ContainerUsage[]): PodMetricsList {
  const items = pods.flatMap((pod): PodMetrics[] => {
    const own = usage.filter(({ uid }) => uid === pod.metadata.uid)
    const [first] = own
    if (first === undefined) return []
    const { name, namespace, creationTimestamp, labels } = pod.metadata
    return [
      {
        apiVersion: 'metrics.k8s.io/v1beta1',
        kind: 'PodMetrics',
        metadata: { name, namespace, creationTimestamp, ...(labels !== undefined && { labels }) },
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
