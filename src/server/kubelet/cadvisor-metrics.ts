import type { PodObject } from '../../api/resource.ts'
import type { ContainerStats, InterfaceStats, NodeStats } from '../../pod/state/usage.ts'
import type { MetricFamily } from './metric-family.ts'
import { secondsOf, seriesOf, single } from './metric-family.ts'
import { pairPods, startedAtMs } from './resource-metrics.ts'

/** A metric of each container. */
interface ContainerMetric {
  readonly name: string
  readonly help: string
  readonly type: MetricFamily['type']
  readonly labels?: Readonly<Record<string, string>>
  readonly read: (container: ContainerStats) => number | undefined
}

const containerMetrics: readonly ContainerMetric[] = [
  {
    name: 'container_cpu_usage_seconds_total',
    help: 'Cumulative cpu time consumed in seconds.',
    type: 'counter',
    labels: { cpu: 'total' },
    read: ({ cpuNanoSeconds }) => secondsOf(cpuNanoSeconds),
  },
  {
    name: 'container_memory_usage_bytes',
    help: 'Current memory usage in bytes, including all memory regardless of when it was accessed',
    type: 'gauge',
    read: ({ memory }) => memory.usage,
  },
  {
    name: 'container_memory_working_set_bytes',
    help: 'Current working set in bytes.',
    type: 'gauge',
    read: ({ memory }) => memory.workingSet,
  },
  {
    name: 'container_memory_rss',
    help: 'Size of RSS in bytes.',
    type: 'gauge',
    read: ({ memory }) => memory.rss,
  },
  {
    name: 'container_memory_swap',
    help: 'Container swap usage in bytes.',
    type: 'gauge',
    read: ({ swapBytes }) => swapBytes,
  },
  {
    name: 'container_fs_usage_bytes',
    help: 'Number of bytes that are consumed by the container on this filesystem.',
    type: 'gauge',
    labels: { device: '' },
    read: ({ layer }) => layer.usedBytes,
  },
]

interface InterfaceMetric {
  readonly name: string
  readonly help: string
  readonly read: (one: InterfaceStats) => number
}

const interfaceMetrics: readonly InterfaceMetric[] = [
  {
    name: 'container_network_receive_bytes_total',
    help: 'Cumulative count of bytes received',
    read: ({ receivedBytes }) => receivedBytes,
  },
  {
    name: 'container_network_receive_errors_total',
    help: 'Cumulative count of errors encountered while receiving',
    read: ({ receiveErrors }) => receiveErrors,
  },
  {
    name: 'container_network_transmit_bytes_total',
    help: 'Cumulative count of bytes transmitted',
    read: ({ sentBytes }) => sentBytes,
  },
  {
    name: 'container_network_transmit_errors_total',
    help: 'Cumulative count of errors encountered while transmitting',
    read: ({ sendErrors }) => sendErrors,
  },
]

/**
 * `/metrics/cadvisor`, as far as CRI reports it (KEP-2371; the kubelet's with `PodAndContainerStatsFromCRI`): the
 * metrics that dashboards use, under cAdvisor's names and labels.
 */
export function cadvisorMetrics(pods: readonly PodObject[], stats: NodeStats): readonly MetricFamily[] {
  const pairs = pairPods(pods, stats)
  const containers = pairs.flatMap(({ pod, stats: own }) =>
    own.containers.map((container) => ({ pod, container, labels: labelsOf(pod, container) })),
  )
  return [
    {
      name: 'machine_cpu_cores',
      help: 'Number of logical CPU cores.',
      type: 'gauge',
      series: single(stats.host.cpus),
    },
    {
      name: 'machine_memory_bytes',
      help: 'Amount of memory installed on the machine.',
      type: 'gauge',
      series: single(stats.host.memoryCapacityBytes),
    },
    ...containerMetrics.map(({ name, help, type, read, labels: own }): MetricFamily => ({
      name,
      help,
      type,
      series: seriesOf(
        containers.map(({ container, labels }) => ({
          labels: { ...labels, ...own },
          value: read(container),
        })),
      ),
    })),
    {
      name: 'container_memory_failures_total',
      help: 'Cumulative count of memory allocation failures.',
      type: 'counter',
      series: seriesOf(
        containers.flatMap(({ container: { memory }, labels }) => [
          { labels: { ...labels, failure_type: 'pgfault', scope: 'container' }, value: memory.pageFaults },
          {
            labels: { ...labels, failure_type: 'pgmajfault', scope: 'container' },
            value: memory.majorPageFaults,
          },
        ]),
      ),
    },
    {
      name: 'container_start_time_seconds',
      help: 'Start time of the container since unix epoch in seconds.',
      type: 'gauge',
      series: seriesOf(
        containers.map(({ pod, container, labels }) => {
          const ms = startedAtMs(pod, container.id)
          return { labels, value: ms === undefined ? undefined : ms / 1000 }
        }),
      ),
    },
    {
      name: 'container_last_seen',
      help: 'Last time a container was seen by the exporter',
      type: 'gauge',
      series: seriesOf(containers.map(({ labels }) => ({ labels, value: Math.round(stats.atMs / 1000) }))),
    },
    ...interfaceMetrics.map(({ name, help, read }): MetricFamily => ({
      name,
      help,
      type: 'counter',
      series: pairs.flatMap(({ pod: { metadata }, stats: { interfaces } }) =>
        interfaces.map((one) => ({
          labels: { ...podLabels(metadata), interface: one.name },
          value: read(one),
        })),
      ),
    })),
    {
      name: 'container_scrape_error',
      help: '1 if there was an error while getting container metrics, 0 otherwise',
      type: 'gauge',
      series: single(0),
    },
  ]
}

function labelsOf(
  { metadata, status }: PodObject,
  { name, id }: ContainerStats,
): Readonly<Record<string, string>> {
  const { containerStatuses = [], initContainerStatuses = [] } = status
  const image =
    [...containerStatuses, ...initContainerStatuses].find((each) => each.name === name)?.image ?? ''
  const { namespace, name: pod } = metadata
  return { container: name, id: `/${id}`, image, name: id, namespace, pod }
}

/** The network is the sandbox's, which cAdvisor shows as a container without a name. */
function podLabels({ name, namespace, uid }: PodObject['metadata']): Readonly<Record<string, string>> {
  return { container: '', id: `/pod${uid}`, image: '', name: '', namespace, pod: name }
}
