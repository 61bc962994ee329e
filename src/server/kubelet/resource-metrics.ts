import type { PodObject } from '../../api/resource.ts'
import type { NodeStats, PodStats } from '../../pod/state/usage.ts'
import type { MetricFamily } from './metric-family.ts'
import { secondsOf, seriesOf, single } from './metric-family.ts'

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
