import type { PodObject } from '../../api/resource.ts'
import type { ProbeReportObject } from '../../api/usage.ts'
import type { MetricFamily } from './metric-family.ts'

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
