import type { PodObject } from '../../api/resource.ts'
import type {
  ContainerStats,
  InterfaceStats,
  NodeStats,
  PodStats,
  RuntimeMetrics,
} from '../../pod/state/usage.ts'
import { secondsOf, seriesOf, single } from './render-metrics.ts'
import type { MetricFamily } from './render-metrics.ts'

/** Pods with their usage; those without running containers are left out. */
export function pairPods(
  pods: readonly PodObject[],
  { pods: stats }: NodeStats,
): readonly { readonly pod: PodObject; readonly stats: PodStats }[] {
  const byUid = new Map(stats.map((each) => [each.uid, each]))
  return pods.flatMap((pod) => {
    const own = byUid.get(pod.metadata.uid)
    return own === undefined ? [] : [{ pod, stats: own }]
  })
}

/** When a running container was started, in wall milliseconds. */
export function startedAtMs({ status }: PodObject, id: string): number | undefined {
  const { containerStatuses = [], initContainerStatuses = [], ephemeralContainerStatuses = [] } = status
  const all = [...initContainerStatuses, ...containerStatuses, ...ephemeralContainerStatuses]
  const found = all.find(({ containerID }) => containerID?.endsWith(`//${id}`) === true)
  const time = found?.state.running?.startedAt
  return time === undefined ? undefined : Date.parse(time)
}

/** `/metrics/resource` (`pkg/kubelet/metrics/collectors/resource_metrics.go`, 1.36). */
export function resourceMetrics(pods: readonly PodObject[], stats: NodeStats): readonly MetricFamily[] {
  const { host } = stats
  const pairs = pairPods(pods, stats)
  const containers = pairs.flatMap(({ pod, stats: { containers: own } }) =>
    own.map((container) => ({
      container,
      labels: { container: container.name, namespace: pod.metadata.namespace, pod: pod.metadata.name },
      startedAtMs: startedAtMs(pod, container.id),
    })),
  )
  const ofPods = pairs.map(({ pod, stats: { cpuNanoSeconds, memory, swapBytes } }) => ({
    labels: { namespace: pod.metadata.namespace, pod: pod.metadata.name },
    cpu: cpuNanoSeconds,
    memory: memory.workingSet,
    swap: swapBytes,
  }))
  return [
    {
      name: 'node_cpu_usage_seconds_total',
      help: 'Cumulative cpu time consumed by the node in core-seconds',
      type: 'counter',
      series: single(host.cpuNanoSeconds / 1e9),
    },
    {
      name: 'node_memory_working_set_bytes',
      help: 'Current working set of the node in bytes',
      type: 'gauge',
      series: single(host.memoryWorkingSetBytes),
    },
    {
      name: 'node_swap_usage_bytes',
      help: 'Current swap usage of the node in bytes',
      type: 'gauge',
      series: single(host.swapUsedBytes),
    },
    {
      name: 'container_cpu_usage_seconds_total',
      help: 'Cumulative cpu time consumed by the container in core-seconds',
      type: 'counter',
      series: seriesOf(
        containers.map(({ labels, container }) => ({ labels, value: secondsOf(container.cpuNanoSeconds) })),
      ),
    },
    {
      name: 'container_memory_working_set_bytes',
      help: 'Current working set of the container in bytes',
      type: 'gauge',
      series: seriesOf(
        containers.map(({ labels, container }) => ({ labels, value: container.memory.workingSet })),
      ),
    },
    {
      name: 'container_swap_usage_bytes',
      help: 'Current amount of the container swap usage in bytes',
      type: 'gauge',
      series: seriesOf(containers.map(({ labels, container }) => ({ labels, value: container.swapBytes }))),
    },
    {
      name: 'container_start_time_seconds',
      help: 'Start time of the container since unix epoch in seconds',
      type: 'gauge',
      series: seriesOf(
        containers.map(({ labels, startedAtMs: ms }) => ({
          labels,
          value: ms === undefined ? undefined : ms / 1000,
        })),
      ),
    },
    {
      name: 'pod_cpu_usage_seconds_total',
      help: 'Cumulative cpu time consumed by the pod in core-seconds',
      type: 'counter',
      series: seriesOf(ofPods.map(({ labels, cpu }) => ({ labels, value: secondsOf(cpu) }))),
    },
    {
      name: 'pod_memory_working_set_bytes',
      help: 'Current working set of the pod in bytes',
      type: 'gauge',
      series: seriesOf(ofPods.map(({ labels, memory }) => ({ labels, value: memory }))),
    },
    {
      name: 'pod_swap_usage_bytes',
      help: 'Current amount of the pod swap usage in bytes',
      type: 'gauge',
      series: seriesOf(ofPods.map(({ labels, swap }) => ({ labels, value: swap }))),
    },
    {
      name: 'resource_scrape_error',
      help: '1 if there was an error while getting container metrics, 0 otherwise',
      type: 'gauge',
      series: single(0),
    },
  ]
}

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
 * `/metrics/cadvisor` (KEP-2371; the kubelet's with `PodAndContainerStatsFromCRI`): the metrics that dashboards use, under
 * cAdvisor's names and labels. What podd itself computes of the runtime's statistics comes first, for it has fractions of
 * seconds, which CRI's metrics lack; all else is as the runtime gives it.
 */
export function cadvisorMetrics(
  pods: readonly PodObject[],
  stats: NodeStats,
  ofRuntime: RuntimeMetrics,
): readonly MetricFamily[] {
  const own = ownCadvisorMetrics(pods, stats).filter(({ series }) => series.length > 0)
  const known = new Set(own.map(({ name }) => name))
  return [
    ...own,
    ...ofRuntime.families.filter(({ name }) => !known.has(name)),
    {
      name: 'container_scrape_error',
      help: '1 if there was an error while getting container metrics, 0 otherwise',
      type: 'gauge',
      series: single(ofRuntime.failed ? 1 : 0),
    },
  ]
}

function ownCadvisorMetrics(pods: readonly PodObject[], stats: NodeStats): readonly MetricFamily[] {
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
