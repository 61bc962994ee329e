import { kubernetesVersion } from '../../api/resource.ts'
import type { PodObject } from '../../api/resource.ts'
import type { DaemonStatus } from '../../api/routes.ts'
import type { ProbeReportObject } from '../../api/usage.ts'
import type { ProcessFacts, TerminationCount } from '../requests/readers.ts'
import { single } from './render-metrics.ts'
import type { MetricFamily } from './render-metrics.ts'

interface KubeletFacts {
  readonly status: DaemonStatus
  readonly pods: readonly PodObject[]
  readonly nodeName: string
  readonly process: ProcessFacts
  readonly terminations: readonly TerminationCount[]
}

/** The kubelet's names of RPCs, where they differ from the RPC's own with underscores (`pkg/kubelet/kuberuntime/instrumented_services.go`, 1.36). */
const operationNames: Readonly<Record<string, string>> = {
  RunPodSandbox: 'run_podsandbox',
  StopPodSandbox: 'stop_podsandbox',
  RemovePodSandbox: 'remove_podsandbox',
  PodSandboxStatus: 'podsandbox_status',
  ListPodSandbox: 'list_podsandbox',
  PodSandboxStats: 'podsandbox_stats',
  ListPodSandboxStats: 'list_podsandbox_stats',
  UpdateContainerResources: 'update_container',
  ImageFsInfo: 'image_fs_info',
}

/** `/metrics`: those of the kubelet's metrics that podd has, and podd's own. */
export function kubeletMetrics({
  status,
  pods,
  nodeName,
  process,
  terminations,
}: KubeletFacts): readonly MetricFamily[] {
  const states = pods.flatMap(({ status: { containerStatuses = [], initContainerStatuses = [] } }) =>
    [...initContainerStatuses, ...containerStatuses].map(({ state }) =>
      state.running === undefined ? (state.terminated === undefined ? 'created' : 'exited') : 'running',
    ),
  )
  return [
    {
      name: 'kubernetes_build_info',
      help: 'A metric with a constant 1 value labeled by the version of Kubernetes that podd matches, and the version of podd.',
      type: 'gauge',
      series: [{ labels: { git_version: `v${kubernetesVersion}`, podd_version: status.version }, value: 1 }],
    },
    {
      name: 'kubelet_node_name',
      help: "The node's name. The count is always 1.",
      type: 'gauge',
      series: [{ labels: { node: nodeName }, value: 1 }],
    },
    {
      name: 'kubelet_running_pods',
      help: 'Number of pods that have a running pod sandbox',
      type: 'gauge',
      series: single(pods.filter(({ status: { phase } }) => phase === 'Running').length),
    },
    {
      name: 'kubelet_active_pods',
      help: 'The number of pods that are desired and have not reached a terminal phase.',
      type: 'gauge',
      series: [
        {
          labels: { static: 'true' },
          value: pods.filter(({ status: { phase } }) => phase !== 'Succeeded' && phase !== 'Failed').length,
        },
      ],
    },
    {
      name: 'kubelet_desired_pods',
      help: 'The number of pods that are desired.',
      type: 'gauge',
      series: [{ labels: { static: 'true' }, value: pods.length }],
    },
    {
      name: 'kubelet_running_containers',
      help: 'Number of containers by their state',
      type: 'gauge',
      series: [...Map.groupBy(states, (state) => state)].map(([state, of]) => ({
        labels: { container_state: state },
        value: of.length,
      })),
    },
    {
      name: 'kubelet_terminated_containers_total',
      help: 'Cumulative number of container terminations.',
      type: 'counter',
      series: terminations.map(({ type, exitCode, reason, count }) => ({
        labels: { container_type: type, exit_code: String(exitCode), reason },
        value: count,
      })),
    },
    {
      name: 'kubelet_runtime_operations_total',
      help: 'Cumulative number of runtime operations by operation type.',
      type: 'counter',
      series: Object.entries(status.runtime.calls).map(([rpc, value]) => ({
        labels: { operation_type: toOperation(rpc) },
        value,
      })),
    },
    ...poddMetrics(status),
    {
      name: 'process_cpu_seconds_total',
      help: 'Total user and system CPU time spent in seconds.',
      type: 'counter',
      series: single(process.cpuSeconds),
    },
    {
      name: 'process_resident_memory_bytes',
      help: 'Resident memory size in bytes.',
      type: 'gauge',
      series: single(process.residentBytes),
    },
    {
      name: 'process_start_time_seconds',
      help: 'Start time of the process since unix epoch in seconds.',
      type: 'gauge',
      series: single(process.startedAtSeconds),
    },
  ]
}

/** Metrics for alerts that a kubelet doesn't have. */
function poddMetrics({ runtime, sources, problems, pressure, jobs }: DaemonStatus): readonly MetricFamily[] {
  return [
    {
      name: 'podd_runtime_up',
      help: '1 where the container runtime can be used.',
      type: 'gauge',
      series: single(runtime.healthy ? 1 : 0),
    },
    {
      name: 'podd_source_ready',
      help: '1 where a source was read, or its last good copy stands in for it.',
      type: 'gauge',
      series: sources.map(({ source, ready }) => ({ labels: { source }, value: ready ? 1 : 0 })),
    },
    {
      name: 'podd_source_pods',
      help: 'The number of pods that a source gives.',
      type: 'gauge',
      series: sources.map(({ source, pods }) => ({ labels: { source }, value: pods })),
    },
    {
      name: 'podd_source_held',
      help: '1 where the changes of a source are not applied until podd resume.',
      type: 'gauge',
      series: sources.map(({ source, heldSince }) => ({
        labels: { source },
        value: heldSince === undefined ? 0 : 1,
      })),
    },
    {
      name: 'podd_problems',
      help: 'The number of documents and files that are not followed, or of warnings about them.',
      type: 'gauge',
      series: (['error', 'warning'] as const).map((severity) => ({
        labels: { severity },
        value: problems.filter((problem) => problem.severity === severity).length,
      })),
    },
    {
      name: 'podd_node_pressure',
      help: '1 where the node is under that pressure.',
      type: 'gauge',
      series: (['MemoryPressure', 'DiskPressure', 'PIDPressure'] as const).map((condition) => ({
        labels: { condition },
        value: pressure?.conditions.includes(condition) === true ? 1 : 0,
      })),
    },
    {
      name: 'podd_job_runs_total',
      help: 'Cumulative number of runs of a periodic job about the host.',
      type: 'counter',
      series: jobs.map(({ name, runs }) => ({ labels: { job: name }, value: runs })),
    },
    {
      name: 'podd_job_failing',
      help: '1 where the last run of a periodic job failed.',
      type: 'gauge',
      series: jobs.map(({ name, error }) => ({ labels: { job: name }, value: error === undefined ? 0 : 1 })),
    },
  ]
}

function toOperation(rpc: string): string {
  return operationNames[rpc] ?? rpc.replaceAll(/(?<=[a-z])(?=[A-Z])/gu, '_').toLowerCase()
}

const probeTypes = { liveness: 'Liveness', readiness: 'Readiness', startup: 'Startup' } as const

/** `/metrics/probes` (`pkg/kubelet/prober/prober_manager.go`, 1.36). */
export function probeMetrics(
  pods: readonly PodObject[],
  listProbes: (uid: string) => readonly ProbeReportObject[],
): readonly MetricFamily[] {
  const series = pods.flatMap(({ metadata: { name, namespace, uid } }) =>
    listProbes(uid).flatMap(({ container, probe, counts }) =>
      [
        { result: 'successful', value: counts.success },
        { result: 'failed', value: counts.failure },
        { result: 'unknown', value: counts.unknown },
      ]
        .filter(({ value }) => value > 0)
        .map(({ result, value }) => ({
          labels: { probe_type: probeTypes[probe], result, container, pod: name, namespace, pod_uid: uid },
          value,
        })),
    ),
  )
  return [
    {
      name: 'prober_probe_total',
      help: 'Cumulative number of a liveness, readiness or startup probe for a container by result.',
      type: 'counter',
      series,
    },
  ]
}
