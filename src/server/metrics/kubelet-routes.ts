import { findContainer } from '../../api/pod-summary.ts'
import type { PodObject } from '../../api/resource.ts'
import { errorMessage } from '../../base/errors.ts'
import { refuseProxied } from '../access/browser-requests.ts'
import { ApiError, notFound } from '../requests/api-error.ts'
import type { ApiReaders } from '../requests/readers.ts'
import { jsonResponse } from '../requests/request.ts'
import type { ApiResponse } from '../requests/request.ts'
import { get, post, withPods } from '../requests/route.ts'
import type { Call, Route } from '../requests/route.ts'
import { findRunningContainer, findRunningPod } from '../routes/pod-target.ts'
import type { MetricFamily } from './render-metrics.ts'

/**
 * The kubelet's endpoints, at the paths of its own port, and below the node's `proxy`, where the API server forwards
 * them.
 */
export function kubeletRoutes(readers: ApiReaders): readonly Route[] {
  const checkpoint = withPods(post('/checkpoint/*/*/*', (call) => checkpointContainer(readers, call)))
  return [...readOnlyRoutes(readers), ...belowNodeToo(checkpoint, readers.kubelet.nodeName)]
}

/** Those of them that only show something. */
export function readOnlyRoutes(readers: ApiReaders): readonly Route[] {
  const { kubelet, probes, reach, resources, sources, status, units } = readers
  const pods = (): readonly PodObject[] => resources.pods.list()
  const show = (pattern: string, handle: Route['handle']): Route => withPods(get(pattern, handle))
  const routes = [
    show('/metrics', async () => {
      const [{ kubeletMetrics, sourceMetrics, unitMetrics }, { stateMetrics }] = await Promise.all([
        import('./kubelet-metrics.ts'),
        import('./state-metrics.ts'),
      ])
      const shown = pods()
      return metrics(
        (function* () {
          yield* kubeletMetrics(status.daemonStatus(), shown, kubelet)
          yield* sourceMetrics(sources.list())
          yield* unitMetrics(units.list())
          yield* stateMetrics(shown, kubelet.nodeName)
        })(),
      )
    }),
    show('/metrics/resource', async ({ signal }) => {
      const { resourceMetrics } = await import('./resource-metrics.ts')
      return metrics(resourceMetrics(pods(), await kubelet.measure(signal)))
    }),
    show('/metrics/cadvisor', async ({ signal }) => {
      const { cadvisorMetrics } = await import('./resource-metrics.ts')
      const [stats, ofRuntime] = await Promise.all([kubelet.measure(signal), kubelet.runtimeMetrics(signal)])
      return metrics(cadvisorMetrics(pods(), stats, ofRuntime))
    }),
    show('/metrics/probes', async () => {
      const { probeMetrics } = await import('./kubelet-metrics.ts')
      return metrics(probeMetrics(pods(), (uid) => probes.listProbes(uid)))
    }),
    show('/stats/summary', async ({ signal }) => {
      const { statsSummary } = await import('./stats-summary.ts')
      const [stats, usage] = await Promise.all([kubelet.measure(signal), reach.usage(signal)])
      return jsonResponse(statsSummary(kubelet.nodeName, stats, pods(), usage))
    }),
    show('/pods', () => listOf(pods())),
    show('/runningpods', () => listOf(pods().filter(({ status: { phase } }) => phase === 'Running'))),
    show('/configz', () => jsonResponse({ kubeletconfig: kubelet.config })),
  ]
  return routes.flatMap((route) => belowNodeToo(route, kubelet.nodeName))
}

function belowNodeToo(route: Route, nodeName: string): readonly Route[] {
  return [
    route,
    {
      ...route,
      pattern: `/api/v1/nodes/*/proxy${route.pattern}`,
      handle: async (call) => {
        refuseProxied(call.request)
        const [asked = ''] = call.names
        // Clients name the port too, and the scheme: `https:box:10250`.
        const name = asked.replace(/^https?:(?=.*:)/u, '').replace(/:[^:]*$/u, '')
        if (name !== nodeName) throw notFound('nodes', name)
        return route.handle({ ...call, names: call.names.slice(1) })
      },
    },
  ]
}

async function metrics(families: Iterable<MetricFamily>): Promise<ApiResponse> {
  const { renderMetrics } = await import('./render-metrics.ts')
  return { status: 200, ...(await renderMetrics(families)) }
}

function listOf(items: readonly PodObject[]): ApiResponse {
  return jsonResponse({ apiVersion: 'v1', kind: 'PodList', metadata: {}, items })
}

/**
 * Has a running container written into a file; answers with its path (`pkg/kubelet/server/server.go` checkpoint, 1.36,
 * its words and codes). Throws ApiError.
 */
async function checkpointContainer(
  { resources, reach }: Pick<ApiReaders, 'resources' | 'reach'>,
  { names: [namespace = '', name = '', container = ''], query }: Call,
): Promise<ApiResponse> {
  const pods = resources.pods
  if (!pods.list().some(({ metadata }) => metadata.namespace === namespace && metadata.name === name))
    throw new ApiError(404, 'pod does not exist')
  const pod = findRunningPod(pods, namespace, name)
  if (findContainer(pod, container) === undefined)
    throw new ApiError(404, `container ${container} does not exist`)
  const timeout = query.getAll('timeout').at(-1) ?? '0'
  if (!/^[+-]?\d{1,15}$/u.test(timeout)) throw new ApiError(404, 'cannot parse value of timeout parameter')
  try {
    const containerId = findRunningContainer(pod, container)
    const target = { pod: { namespace, name }, container, containerId, timeoutSeconds: Number(timeout) }
    return jsonResponse({ items: [await reach.checkpoint(target)] })
  } catch (error) {
    throw new ApiError(
      500,
      `checkpointing of ${namespace}/${name}/${container} failed (${errorMessage(error)})`,
    )
  }
}
