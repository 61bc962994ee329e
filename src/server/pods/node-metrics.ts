import type { NodeMetrics, NodeMetricsList } from '../../api/usage.ts'
import { formatTime } from '../../base/clock.ts'
import { ApiError, notFound } from '../requests/api-error.ts'
import type { ApiReaders } from '../requests/readers.ts'
import type { Call } from '../requests/route.ts'

/** The host's usage, for `kubectl top nodes`. Throws ApiError NotFound for a name that isn't the host's. */
export async function readNodeMetrics(
  { resources, reach }: Pick<ApiReaders, 'resources' | 'reach'>,
  { names: [name], signal }: Pick<Call, 'names' | 'signal'>,
): Promise<NodeMetrics | NodeMetricsList> {
  await resources.nodes.whenListed()
  const [node] = resources.nodes.reader.list()
  if (name !== undefined && node?.metadata.name !== name) throw notFound('nodes.metrics.k8s.io', name)
  if (node === undefined) throw new ApiError(503, 'the node is not known yet')
  const usage = await reach.nodeUsage(signal)
  const { name: nodeName, labels, creationTimestamp } = node.metadata
  const apiVersion = 'metrics.k8s.io/v1beta1'
  const metrics: NodeMetrics = {
    apiVersion,
    kind: 'NodeMetrics',
    metadata: {
      name: nodeName,
      ...(labels !== undefined && { labels }),
      ...(creationTimestamp !== undefined && { creationTimestamp }),
    },
    timestamp: formatTime(usage.atMs),
    window: `${usage.windowMs / 1000}s`,
    usage: { cpu: `${usage.cpuNanoCores}n`, memory: `${Math.ceil(usage.memoryBytes / 1024)}Ki` },
  }
  if (name !== undefined) return metrics
  return { kind: 'NodeMetricsList', apiVersion, metadata: {}, items: [metrics] }
}
