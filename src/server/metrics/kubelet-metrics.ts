import { kubernetesVersion } from '../../api/resource.ts'
import type { PodObject } from '../../api/resource.ts'
import type { DaemonStatus } from '../../api/routes.ts'
import type { SourceObject, UnitObject } from '../../api/sources.ts'
import type { ProbeReportObject } from '../../api/usage.ts'
import type { PodCounts, RuntimeOperation } from '../../pod/state/usage.ts'
import type { ApiReaders } from '../requests/readers.ts'
import { counter, gauge, histogram } from './render-metrics.ts'
import type { MetricFamily } from './render-metrics.ts'

/** The kubelet's names of RPCs, where they differ from the RPC's own with underscores (`pkg/kubelet/kuberuntime/instrumented_services.go`, 1.36). */
const operationNames: Readonly<Record<string, string>> = {
  RunPodSandbox: 'run_podsandbox',
  StopPodSandbox: 'stop_podsandbox',
  RemovePodSandbox: 'remove_podsandbox',
  PodSandboxStatus: 'podsandbox_status',
  ListPodSandbox: 'list_podsandbox',
  PodSandboxStats: 'podsandbox_stats',
  ListPodSandboxStats: 'list_podsandbox_stats',
  ListPodSandboxMetrics: 'list_podsandbox_metrics',
  UpdateContainerResources: 'update_container',
  ImageFsInfo: 'image_fs_info',
}

/** `/metrics`: those of the kubelet's metrics that podd has, and podd's own. */
export function kubeletMetrics(
  status: DaemonStatus,
  pods: readonly PodObject[],
  kubelet: Pick<ApiReaders['kubelet'], 'nodeName' | 'process' | 'counts' | 'operations'>,
): readonly MetricFamily[] {
  const process = kubelet.process()
  const states = pods.flatMap(({ status: { containerStatuses = [], initContainerStatuses = [] } }) =>
    [...initContainerStatuses, ...containerStatuses].map(({ state }) =>
      state.running === undefined ? (state.terminated === undefined ? 'created' : 'exited') : 'running',
    ),
  )
  return [
    gauge(
      'kubernetes_build_info',
      'A metric with a constant 1 value labeled by the version of Kubernetes that podd matches, and the version of podd.',
      [{ labels: { git_version: `v${kubernetesVersion}`, podd_version: status.version }, value: 1 }],
    ),
    gauge('kubelet_node_name', "The node's name. The count is always 1.", [
      { labels: { node: kubelet.nodeName }, value: 1 },
    ]),
    gauge(
      'kubelet_running_pods',
      'Number of pods that have a running pod sandbox',
      pods.filter(({ status: { phase } }) => phase === 'Running').length,
    ),
    gauge(
      'kubelet_active_pods',
      'The number of pods that are desired and have not reached a terminal phase.',
      [
        {
          labels: { static: 'true' },
          value: pods.filter(({ status: { phase } }) => phase !== 'Succeeded' && phase !== 'Failed').length,
        },
      ],
    ),
    gauge('kubelet_desired_pods', 'The number of pods that are desired.', [
      { labels: { static: 'true' }, value: pods.length },
    ]),
    gauge(
      'kubelet_running_containers',
      'Number of containers by their state',
      [...Map.groupBy(states, (state) => state)].map(([state, of]) => ({
        labels: { container_state: state },
        value: of.length,
      })),
    ),
    ...countedMetrics(kubelet.counts()),
    ...operationMetrics(kubelet.operations()),
    ...poddMetrics(status),
    counter(
      'process_cpu_seconds_total',
      'Total user and system CPU time spent in seconds.',
      process.cpuSeconds,
    ),
    gauge('process_resident_memory_bytes', 'Resident memory size in bytes.', process.residentBytes),
    gauge(
      'process_start_time_seconds',
      'Start time of the process since unix epoch in seconds.',
      process.startedAtSeconds,
    ),
  ]
}

function countedMetrics({
  terminations,
  starts,
  failedStarts,
  podStarts,
  passes,
}: PodCounts): readonly MetricFamily[] {
  return [
    counter(
      'kubelet_terminated_containers_total',
      'Cumulative number of container terminations.',
      terminations.map(({ type, exitCode, reason, count }) => ({
        labels: { container_type: type, exit_code: String(exitCode), reason },
        value: count,
      })),
    ),
    counter(
      'kubelet_started_containers_total',
      'Cumulative number of containers started',
      starts.map(({ type, count }) => ({ labels: { container_type: type }, value: count })),
    ),
    counter(
      'kubelet_started_containers_errors_total',
      'Cumulative number of errors when starting containers',
      failedStarts.map(({ type, code, count }) => ({ labels: { container_type: type, code }, value: count })),
    ),
    histogram(
      'kubelet_pod_start_duration_seconds',
      'Duration in seconds from when podd first had a pod until the pod ran',
      [{ labels: {}, counts: podStarts }],
    ),
    histogram(
      'kubelet_pod_worker_duration_seconds',
      'Duration in seconds to sync a single pod. Broken down by operation type: create, update, sync or kill',
      passes.map(({ kind, durations }) => ({ labels: { operation_type: kind }, counts: durations })),
    ),
  ]
}

/**
 * Of calls of the runtime. Starting a pod is making its sandbox, as the kubelet counts it
 * (`pkg/kubelet/kuberuntime/kuberuntime_manager.go` SyncPod, 1.36).
 */
function operationMetrics(operations: readonly RuntimeOperation[]): readonly MetricFamily[] {
  const labelled = operations.map(({ rpc, errors, durations }) => ({
    labels: {
      operation_type: operationNames[rpc] ?? rpc.replaceAll(/(?<=[a-z])(?=[A-Z])/gu, '_').toLowerCase(),
    },
    errors,
    durations,
  }))
  const sandboxes = operations.find(({ rpc }) => rpc === 'RunPodSandbox')
  return [
    counter(
      'kubelet_runtime_operations_total',
      'Cumulative number of runtime operations by operation type.',
      labelled.map(({ labels, durations }) => ({ labels, value: durations.count })),
    ),
    counter(
      'kubelet_runtime_operations_errors_total',
      'Cumulative number of runtime operation errors by operation type.',
      labelled.filter(({ errors }) => errors > 0).map(({ labels, errors }) => ({ labels, value: errors })),
    ),
    histogram(
      'kubelet_runtime_operations_duration_seconds',
      'Duration in seconds of runtime operations. Broken down by operation type.',
      labelled.map(({ labels, durations }) => ({ labels, counts: durations })),
    ),
    counter(
      'kubelet_started_pods_total',
      'Cumulative number of pods started',
      sandboxes?.durations.count ?? 0,
    ),
    counter(
      'kubelet_started_pods_errors_total',
      'Cumulative number of errors when starting pods',
      sandboxes?.errors ?? 0,
    ),
  ]
}

const sourceStates: readonly SourceObject['status']['state'][] = ['Following', 'Held', 'Failing', 'Unread']

/** Of the sources that are configured. */
export function sourceMetrics(sources: readonly SourceObject[]): readonly MetricFamily[] {
  const labelled = sources.map(({ metadata, status }) => ({ labels: { source: metadata.name }, status }))
  return [
    gauge(
      'podd_source_up',
      '1 where a source can be read; 0 while it fails, also where its last good copy stands in for it.',
      // One that is held is read all the same.
      labelled.map(({ labels, status: { state, failingSince } }) => ({
        labels,
        value: state !== 'Unread' && failingSince === undefined ? 1 : 0,
      })),
    ),
    gauge(
      'podd_source_last_success_timestamp_seconds',
      'When a source was read, or its server answered, last, in seconds since unix epoch.',
      labelled.map(({ labels, status: { lastAnswerTime } }) => ({
        labels,
        value: lastAnswerTime === undefined ? undefined : Date.parse(lastAnswerTime) / 1000,
      })),
    ),
    gauge(
      'podd_source_revision_info',
      'A metric with a constant 1 value labeled by the hash of what a source gave last.',
      // Not by the ETag too: a server may make another one for each answer.
      labelled.map(({ labels, status: { hash = '' } }) => ({
        labels: { ...labels, revision: hash },
        value: 1,
      })),
    ),
    gauge(
      'podd_source_state',
      '1 for the state that a source is in, 0 for the others.',
      labelled.flatMap(({ labels, status }) =>
        sourceStates.map((state) => ({
          labels: { ...labels, state },
          value: status.state === state ? 1 : 0,
        })),
      ),
    ),
  ]
}

const unitStates: readonly UnitObject['status']['state'][] = [
  'Progressing',
  'Healthy',
  'Failed',
  'RolledBack',
  'RollbackRequested',
  'Invalid',
  'Held',
  'Unread',
]

/** Of files and URLs with revisions. */
export function unitMetrics(units: readonly UnitObject[]): readonly MetricFamily[] {
  // Of pods that were written over the API, their own metrics tell; here only where another version counts.
  const told = units.filter(({ spec, status }) => spec.source !== 'api' || status.active !== status.offered)
  const labelled = told.map(({ metadata, spec, status }) => ({
    labels: { source: spec.source, unit: metadata.name },
    status,
  }))
  return [
    gauge(
      'podd_unit_state',
      '1 for the state that a unit is in (a file of a directory, or a URL), 0 for the others.',
      labelled.flatMap(({ labels, status }) =>
        unitStates.map((state) => ({ labels: { ...labels, state }, value: status.state === state ? 1 : 0 })),
      ),
    ),
    gauge(
      'podd_unit_active_revision',
      'The number of the revision of a unit that counts.',
      labelled.map(({ labels, status }) => ({ labels, value: status.active })),
    ),
    gauge(
      'podd_unit_offered_revision',
      'The number of the revision of a unit that its source gives.',
      labelled.map(({ labels, status }) => ({ labels, value: status.offered })),
    ),
  ]
}

/** Metrics for alerts that a kubelet doesn't have. */
function poddMetrics({ runtime, sources, problems, pressure, jobs }: DaemonStatus): readonly MetricFamily[] {
  return [
    gauge('podd_runtime_up', '1 where the container runtime can be used.', runtime.healthy ? 1 : 0),
    gauge(
      'podd_source_ready',
      '1 where a source was read, or its last good copy stands in for it.',
      sources.map(({ source, ready }) => ({ labels: { source }, value: ready ? 1 : 0 })),
    ),
    gauge(
      'podd_source_pods',
      'The number of pods that a source gives.',
      sources.map(({ source, pods }) => ({ labels: { source }, value: pods })),
    ),
    gauge(
      'podd_source_held',
      '1 where the changes of a source are not applied until podd resume.',
      sources.map(({ source, heldSince }) => ({
        labels: { source },
        value: heldSince === undefined ? 0 : 1,
      })),
    ),
    gauge(
      'podd_problems',
      'The number of documents and files that are not followed, or of warnings about them.',
      (['error', 'warning'] as const).map((severity) => ({
        labels: { severity },
        value: problems.filter((problem) => problem.severity === severity).length,
      })),
    ),
    gauge(
      'podd_node_pressure',
      '1 where the node is under that pressure.',
      (['MemoryPressure', 'DiskPressure', 'PIDPressure'] as const).map((condition) => ({
        labels: { condition },
        value: pressure?.conditions.includes(condition) === true ? 1 : 0,
      })),
    ),
    counter(
      'podd_job_runs_total',
      'Cumulative number of runs of a periodic job about the host.',
      jobs.map(({ name, runs }) => ({ labels: { job: name }, value: runs })),
    ),
    gauge(
      'podd_job_failing',
      '1 where the last run of a periodic job failed.',
      jobs.map(({ name, error }) => ({ labels: { job: name }, value: error === undefined ? 0 : 1 })),
    ),
  ]
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
  const help = 'Cumulative number of a liveness, readiness or startup probe for a container by result.'
  return [counter('prober_probe_total', help, series)]
}
