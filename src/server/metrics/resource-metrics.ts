import { containerStatuses } from '../../api/pod-summary.ts'
import type { PodObject } from '../../api/resource.ts'
import type {
  ContainerStats,
  InterfaceStats,
  NodeStats,
  PodStats,
  RuntimeMetrics,
} from '../../pod/state/usage.ts'
import { counter, gauge, secondsOf } from './render-metrics.ts'
import type { MetricFamily, Values } from './render-metrics.ts'

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
export function startedAtMs(pod: PodObject, id: string): number | undefined {
  const found = containerStatuses(pod).find(({ containerID }) => containerID?.endsWith(`//${id}`) === true)
  const time = found?.state.running?.startedAt
  return time === undefined ? undefined : Date.parse(time)
}

/** `/metrics/resource` (`pkg/kubelet/metrics/collectors/resource_metrics.go`, 1.36). */
export function resourceMetrics(pods: readonly PodObject[], stats: NodeStats): readonly MetricFamily[] {
  const { host } = stats
  const pairs = pairPods(pods, stats).map(({ pod, stats: own }) => {
    const { namespace, name } = pod.metadata
    return { pod, own, labels: { namespace, pod: name } }
  })
  const ofContainers = (read: (container: ContainerStats, pod: PodObject) => number | undefined): Values =>
    pairs.flatMap(({ pod, labels, own: { containers } }) =>
      containers.map((each) => ({ labels: { container: each.name, ...labels }, value: read(each, pod) })),
    )
  const ofPods = (read: (stats: PodStats) => number | undefined): Values =>
    pairs.map(({ labels, own }) => ({ labels, value: read(own) }))
  return [
    counter(
      'node_cpu_usage_seconds_total',
      'Cumulative cpu time consumed by the node in core-seconds',
      host.cpuNanoSeconds / 1e9,
    ),
    gauge(
      'node_memory_working_set_bytes',
      'Current working set of the node in bytes',
      host.memoryWorkingSetBytes,
    ),
    gauge('node_swap_usage_bytes', 'Current swap usage of the node in bytes', host.swapUsedBytes),
    counter(
      'container_cpu_usage_seconds_total',
      'Cumulative cpu time consumed by the container in core-seconds',
      ofContainers(({ cpuNanoSeconds }) => secondsOf(cpuNanoSeconds)),
    ),
    gauge(
      'container_memory_working_set_bytes',
      'Current working set of the container in bytes',
      ofContainers(({ memory }) => memory.workingSet),
    ),
    gauge(
      'container_swap_usage_bytes',
      'Current amount of the container swap usage in bytes',
      ofContainers(({ swapBytes }) => swapBytes),
    ),
    gauge(
      'container_start_time_seconds',
      'Start time of the container since unix epoch in seconds',
      ofContainers(({ id }, pod) => startedAtSeconds(pod, id)),
    ),
    counter(
      'pod_cpu_usage_seconds_total',
      'Cumulative cpu time consumed by the pod in core-seconds',
      ofPods(({ cpuNanoSeconds }) => secondsOf(cpuNanoSeconds)),
    ),
    gauge(
      'pod_memory_working_set_bytes',
      'Current working set of the pod in bytes',
      ofPods(({ memory }) => memory.workingSet),
    ),
    gauge(
      'pod_swap_usage_bytes',
      'Current amount of the pod swap usage in bytes',
      ofPods(({ swapBytes }) => swapBytes),
    ),
    gauge('resource_scrape_error', '1 if there was an error while getting container metrics, 0 otherwise', 0),
  ]
}

function startedAtSeconds(pod: PodObject, id: string): number | undefined {
  const ms = startedAtMs(pod, id)
  return ms === undefined ? undefined : ms / 1000
}

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
    gauge(
      'container_scrape_error',
      '1 if there was an error while getting container metrics, 0 otherwise',
      ofRuntime.failed ? 1 : 0,
    ),
  ]
}

function ownCadvisorMetrics(pods: readonly PodObject[], stats: NodeStats): readonly MetricFamily[] {
  const pairs = pairPods(pods, stats)
  const containers = pairs.flatMap(({ pod, stats: own }) =>
    own.containers.map((container) => ({ pod, container, labels: labelsOf(pod, container) })),
  )
  const ofContainers = (
    read: (container: ContainerStats, pod: PodObject) => number | undefined,
    more: Readonly<Record<string, string>> = {},
  ): Values =>
    containers.map(({ pod, container, labels }) => ({
      labels: { ...labels, ...more },
      value: read(container, pod),
    }))
  const ofInterfaces = (read: (one: InterfaceStats) => number): Values =>
    pairs.flatMap(({ pod: { metadata }, stats: { interfaces } }) =>
      interfaces.map((one) => ({
        labels: { ...podLabels(metadata), interface: one.name },
        value: read(one),
      })),
    )
  return [
    gauge('machine_cpu_cores', 'Number of logical CPU cores.', stats.host.cpus),
    gauge(
      'machine_memory_bytes',
      'Amount of memory installed on the machine.',
      stats.host.memoryCapacityBytes,
    ),
    counter(
      'container_cpu_usage_seconds_total',
      'Cumulative cpu time consumed in seconds.',
      ofContainers(({ cpuNanoSeconds }) => secondsOf(cpuNanoSeconds), { cpu: 'total' }),
    ),
    gauge(
      'container_memory_usage_bytes',
      'Current memory usage in bytes, including all memory regardless of when it was accessed',
      ofContainers(({ memory }) => memory.usage),
    ),
    gauge(
      'container_memory_working_set_bytes',
      'Current working set in bytes.',
      ofContainers(({ memory }) => memory.workingSet),
    ),
    gauge(
      'container_memory_rss',
      'Size of RSS in bytes.',
      ofContainers(({ memory }) => memory.rss),
    ),
    gauge(
      'container_memory_swap',
      'Container swap usage in bytes.',
      ofContainers(({ swapBytes }) => swapBytes),
    ),
    gauge(
      'container_fs_usage_bytes',
      'Number of bytes that are consumed by the container on this filesystem.',
      ofContainers(({ layer }) => layer.usedBytes, { device: '' }),
    ),
    counter(
      'container_memory_failures_total',
      'Cumulative count of memory allocation failures.',
      containers.flatMap(({ container: { memory }, labels }) => [
        { labels: { ...labels, failure_type: 'pgfault', scope: 'container' }, value: memory.pageFaults },
        {
          labels: { ...labels, failure_type: 'pgmajfault', scope: 'container' },
          value: memory.majorPageFaults,
        },
      ]),
    ),
    gauge(
      'container_start_time_seconds',
      'Start time of the container since unix epoch in seconds.',
      ofContainers(({ id }, pod) => startedAtSeconds(pod, id)),
    ),
    gauge(
      'container_last_seen',
      'Last time a container was seen by the exporter',
      ofContainers(() => Math.round(stats.atMs / 1000)),
    ),
    counter(
      'container_network_receive_bytes_total',
      'Cumulative count of bytes received',
      ofInterfaces(({ receivedBytes }) => receivedBytes),
    ),
    counter(
      'container_network_receive_errors_total',
      'Cumulative count of errors encountered while receiving',
      ofInterfaces(({ receiveErrors }) => receiveErrors),
    ),
    counter(
      'container_network_transmit_bytes_total',
      'Cumulative count of bytes transmitted',
      ofInterfaces(({ sentBytes }) => sentBytes),
    ),
    counter(
      'container_network_transmit_errors_total',
      'Cumulative count of errors encountered while transmitting',
      ofInterfaces(({ sendErrors }) => sendErrors),
    ),
  ]
}

function labelsOf(pod: PodObject, { name, id }: ContainerStats): Readonly<Record<string, string>> {
  const image = containerStatuses(pod).find((each) => each.name === name)?.image ?? ''
  const { metadata } = pod
  return { container: name, id: `/${id}`, image, name: id, namespace: metadata.namespace, pod: metadata.name }
}

/** The network is the sandbox's, which cAdvisor shows as a container without a name. */
function podLabels({ name, namespace, uid }: PodObject['metadata']): Readonly<Record<string, string>> {
  return { container: '', id: `/pod${uid}`, image: '', name: '', namespace, pod: name }
}
