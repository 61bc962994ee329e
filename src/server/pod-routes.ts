import { readNodeMetrics } from './pods/node-metrics.ts'
import { readPodMetrics } from './pods/pod-metrics.ts'
import { openLog } from './pods/open-log.ts'
import type { PodLogs } from './pods/pod-logs.ts'
import { ApiError } from './requests/api-error.ts'
import { jsonResponse } from './requests/api-request.ts'
import type { ApiResponse } from './requests/api-request.ts'
import type { ApiReaders } from './requests/readers.ts'
import { parseLabelSelector } from './resources/label-selector.ts'
import type { Call, Route } from './requests/route.ts'

/** The routes of a pod's subresources: logs, metrics, and streams that need an upgraded connection. */
export function podRoutes(readers: ApiReaders, logs: PodLogs): readonly Route[] {
  const metrics = async (call: Call): Promise<ApiResponse> =>
    jsonResponse(
      await readPodMetrics(readers, call, parseLabelSelector(call.query.get('labelSelector') ?? '')),
    )
  const log = async ({
    names: [namespace = '', name = ''],
    query,
    clock,
    signal,
  }: Call): Promise<ApiResponse> => {
    const { body, follow } = await openLog(readers, logs, { namespace, name, query, clock, signal })
    // The head tells a client that follows a log that it was found, also while the container is silent.
    const headFirst = follow
    return { status: 200, contentType: 'text/plain; charset=utf-8', body, headFirst, mayWait: true }
  }
  const nodeMetrics = async (call: Call): Promise<ApiResponse> =>
    jsonResponse(await readNodeMetrics(readers, call))
  const gets = [
    ['/apis/metrics.k8s.io/v1beta1/nodes', nodeMetrics],
    ['/apis/metrics.k8s.io/v1beta1/nodes/*', nodeMetrics],
    ['/api/v1/namespaces/*/pods/*/log', log],
    ['/apis/metrics.k8s.io/v1beta1/pods', metrics],
    ['/apis/metrics.k8s.io/v1beta1/namespaces/*/pods', metrics],
    ['/apis/metrics.k8s.io/v1beta1/namespaces/*/pods/*', metrics],
  ] as const
  return [
    ...gets.map(([pattern, handle]): Route => ({ method: 'GET', pattern, needsPods: true, handle })),
    ...(['GET', 'POST'] as const).flatMap((method) =>
      ['attach', 'exec', 'portforward'].map((resource): Route => {
        const pattern = `/api/v1/namespaces/*/pods/*/${resource}`
        return { method, pattern, handle: refuseWithoutUpgrade }
      }),
    ),
  ]
}

/** Requests for an upgrade are handled elsewhere. */
function refuseWithoutUpgrade(): never {
  throw new ApiError(400, 'Upgrade request required')
}
