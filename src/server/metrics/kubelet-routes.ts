import type { PodObject } from '../../api/resource.ts'
import { refuseProxied } from '../access/browser-requests.ts'
import type { ApiReaders } from '../requests/readers.ts'
import { jsonResponse } from '../requests/request.ts'
import type { ApiResponse, Route } from '../requests/request.ts'
import type { MetricFamily } from './render-metrics.ts'

/**
 * The kubelet's endpoints, at the paths of its own port, and below the node's `proxy`, where the API server forwards
 * them.
 */
export function kubeletRoutes(readers: ApiReaders): readonly Route[] {
  return ownRoutes(readers).flatMap((route) => [
    route,
    {
      ...route,
      pattern: `/api/v1/nodes/*/proxy${route.pattern}`,
      handle: async (call) => {
        refuseProxied(call.request)
        return route.handle(call)
      },
    } satisfies Route,
  ])
}

function ownRoutes(readers: ApiReaders): readonly Route[] {
  const { kubelet, probes, reach, resources, status } = readers
  const pods = (): readonly PodObject[] => resources.pods.reader.list()
  const get = (pattern: string, handle: Route['handle']): Route => ({
    method: 'GET',
    pattern,
    needsPods: true,
    handle,
  })
  return [
    get('/metrics', async () => {
      const { kubeletMetrics } = await import('./kubelet-metrics.ts')
      return metrics(
        kubeletMetrics({
          status: status.daemonStatus(),
          pods: pods(),
          nodeName: kubelet.nodeName,
          process: kubelet.process(),
          terminations: kubelet.terminations(),
        }),
      )
    }),
    get('/metrics/resource', async ({ signal }) => {
      const { resourceMetrics } = await import('./resource-metrics.ts')
      return metrics(resourceMetrics(pods(), await kubelet.measure(signal)))
    }),
    get('/metrics/cadvisor', async ({ signal }) => {
      const { cadvisorMetrics } = await import('./resource-metrics.ts')
      return metrics(cadvisorMetrics(pods(), await kubelet.measure(signal)))
    }),
    get('/metrics/probes', async () => {
      const { probeMetrics } = await import('./kubelet-metrics.ts')
      return metrics(probeMetrics(pods(), (uid) => probes.listProbes(uid)))
    }),
    get('/stats/summary', async ({ signal }) => {
      const { statsSummary } = await import('./stats-summary.ts')
      const [stats, usage] = await Promise.all([kubelet.measure(signal), reach.usage(signal)])
      return jsonResponse(statsSummary({ nodeName: kubelet.nodeName, stats, pods: pods(), usage }))
    }),
    get('/pods', () => listOf(pods())),
    get('/runningpods', () => listOf(pods().filter(({ status: { phase } }) => phase === 'Running'))),
    get('/configz', () => jsonResponse({ kubeletconfig: kubelet.config })),
  ]
}

async function metrics(families: readonly MetricFamily[]): Promise<ApiResponse> {
  const { renderMetrics } = await import('./render-metrics.ts')
  return { status: 200, ...(await renderMetrics(families)) }
}

function listOf(items: readonly PodObject[]): ApiResponse {
  return jsonResponse({ apiVersion: 'v1', kind: 'PodList', metadata: {}, items })
}
