import type { NodeObject } from '../../api/cluster-objects.ts'
import type { NodeMetrics, NodeMetricsList } from '../../api/usage.ts'
import { parseQuantity, quantityValue } from '../../pod/values/quantity.ts'
import type { Listing, VerbContext } from '../arguments/verb.ts'

/** What the host uses, and how much that is of what pods may use (`kubectl/pkg/metricsutil/metrics_printer.go`, 1.36). */
export async function listNodeUsage(
  { client, signal }: Pick<VerbContext, 'client' | 'signal'>,
  name: string | undefined,
): Promise<Listing> {
  const path = '/apis/metrics.k8s.io/v1beta1/nodes'
  const metrics =
    name === undefined
      ? (await client.getList<NodeMetricsList>(path, signal)).items
      : [await client.get<NodeMetrics>(`${path}/${encodeURIComponent(name)}`, signal)]
  const { items: nodes } = await client.get<{ readonly items: readonly NodeObject[] }>(
    '/api/v1/nodes',
    signal,
  )
  return {
    columns: ['NAME', 'CPU(cores)', 'CPU(%)', 'MEMORY(bytes)', 'MEMORY(%)'].map((title) => ({ title })),
    rows: metrics.map(({ metadata, usage }) => {
      const node = nodes.find((each) => each.metadata.name === metadata.name)
      const { cpu = '0', memory = '0' } = node?.status.allocatable ?? {}
      const cores = Number(parseQuantity(usage.cpu)?.nanos ?? 0n)
      const bytes = quantityValue(usage.memory)
      return [
        metadata.name,
        `${Math.ceil(cores / 1e6)}m`,
        share(cores, Number(parseQuantity(cpu)?.nanos ?? 0n)),
        `${Math.floor(bytes / 1024 ** 2)}Mi`,
        share(bytes, quantityValue(memory)),
      ]
    }),
    objects: metrics,
    listKind: name === undefined ? 'List' : undefined,
  }
}

function share(used: number, whole: number): string {
  return whole > 0 ? `${Math.floor((used / whole) * 100)}%` : '<unknown>'
}
