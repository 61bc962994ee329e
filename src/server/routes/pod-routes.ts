import type { PodObject } from '../../api/resource.ts'
import type { NodeMetrics, NodeMetricsList, PodMetrics, PodMetricsList } from '../../api/usage.ts'
import { formatTime } from '../../base/clock.ts'
import type { ContainerUsage } from '../../pod/state/usage.ts'
import { refuseProxied } from '../access/browser-requests.ts'
import { ApiError, notFound, objectNotFound } from '../requests/api-error.ts'
import type { ApiReaders } from '../requests/readers.ts'
import { jsonResponse } from '../requests/request.ts'
import { get, readTarget, withPods } from '../requests/route.ts'
import type { ApiResponse } from '../requests/request.ts'
import type { Call, Route } from '../requests/route.ts'
import { parseLabelSelector } from '../resources/list-options.ts'
import { openLog } from './pod-logs.ts'
import { findRunningPod } from './pod-target.ts'

/** The routes of a pod's subresources: logs, metrics, and streams that need an upgraded connection. */
export function podRoutes(readers: ApiReaders, podLogsDir: string): readonly Route[] {
  const metrics = async (call: Call): Promise<ApiResponse> =>
    jsonResponse(await readPodMetrics(readers, call))
  const log = async (call: Call): Promise<ApiResponse> => {
    const { body, follow } = await openLog(readers.resources.pods, podLogsDir, call)
    // The head tells a client that follows a log that it was found, also while the container is silent.
    const headFirst = follow
    return { status: 200, contentType: 'text/plain; charset=utf-8', body, headFirst, mayWait: true }
  }
  const nodeMetrics = async (call: Call): Promise<ApiResponse> =>
    jsonResponse(await readNodeMetrics(readers, call))
  const base = '/apis/metrics.k8s.io/v1beta1'
  const gets = [
    get(`${base}/nodes`, nodeMetrics),
    get(`${base}/nodes/*`, nodeMetrics),
    get('/api/v1/namespaces/*/pods/*/log', log),
    get(`${base}/pods`, metrics),
    get(`${base}/namespaces/*/pods`, metrics),
    get(`${base}/namespaces/*/pods/*`, metrics),
  ]
  return [
    ...gets.map((route) => withPods(route)),
    ...(['GET', 'POST'] as const).flatMap((method) =>
      ['attach', 'exec', 'portforward'].map((resource): Route => ({
        method,
        pattern: `/api/v1/namespaces/*/pods/*/${resource}`,
        // Requests for an upgrade are handled elsewhere.
        handle() {
          throw new ApiError(400, 'Upgrade request required')
        },
      })),
    ),
  ]
}

/** The metrics of all pods, those of a namespace, or one pod. Throws ApiError NotFound where it has none. */
async function readPodMetrics(
  { resources, reach }: ApiReaders,
  { names: [namespace, name], query, signal }: Call,
): Promise<PodMetrics | PodMetricsList> {
  const hasLabels = parseLabelSelector(query.get('labelSelector') ?? '')
  const all = resources.pods.list()
  const pods = all
    .filter(({ metadata }) => namespace === undefined || metadata.namespace === namespace)
    .filter(({ metadata }) => name === undefined || metadata.name === name)
    .filter(({ metadata }) => hasLabels(metadata.labels ?? {}))
  if (name !== undefined && pods.length === 0)
    throw objectNotFound('pods', all, { namespace: namespace ?? '', name })
  const list = listPodMetrics(pods, await reach.usage(signal))
  if (name === undefined) return list
  const found = list.items.at(-1)
  if (found === undefined) throw new ApiError(404, `no container of pod ${name} runs`)
  return found
}

/** The usage of the containers of these pods; pods without running containers are left out, as in metrics-server. */
function listPodMetrics(pods: readonly PodObject[], usage: readonly ContainerUsage[]): PodMetricsList {
  const items = pods.flatMap((pod): PodMetrics[] => {
    const own = usage.filter(({ uid }) => uid === pod.metadata.uid)
    const [first] = own
    if (first === undefined) return []
    const { name, namespace, creationTimestamp, labels } = pod.metadata
    return [
      {
        apiVersion: 'metrics.k8s.io/v1beta1',
        kind: 'PodMetrics',
        metadata: { name, namespace, creationTimestamp, ...(labels !== undefined && { labels }) },
        timestamp: formatTime(first.atMs),
        window: `${first.windowMs / 1000}s`,
        containers: own.map(({ container, cpuNanoCores, memoryBytes }) => ({
          name: container,
          usage: { cpu: `${cpuNanoCores}n`, memory: `${Math.ceil(memoryBytes / 1024)}Ki` },
        })),
      },
    ]
  })
  return { apiVersion: 'metrics.k8s.io/v1beta1', kind: 'PodMetricsList', items }
}

/** The host's usage, for `kubectl top nodes`. Throws ApiError NotFound for a name that isn't the host's. */
async function readNodeMetrics(
  readers: ApiReaders,
  { names: [name], signal }: Call,
): Promise<NodeMetrics | NodeMetricsList> {
  await readers.whenListed('nodes')
  const { resources, reach } = readers
  const [node] = resources.nodes.list()
  if (name !== undefined && node?.metadata.name !== name) throw notFound('nodes.metrics.k8s.io', name)
  if (node === undefined) throw new ApiError(503, 'the node is not known yet')
  const usage = await reach.nodeUsage(signal)
  const { name: nodeName, labels, creationTimestamp } = node.metadata
  const apiVersion = 'metrics.k8s.io/v1beta1'
  const metrics: NodeMetrics = {
    apiVersion,
    kind: 'NodeMetrics',
    metadata: {
      name: nodeName,
      ...(labels !== undefined && { labels }),
      ...(creationTimestamp !== undefined && { creationTimestamp }),
    },
    timestamp: formatTime(usage.atMs),
    window: `${usage.windowMs / 1000}s`,
    usage: { cpu: `${usage.cpuNanoCores}n`, memory: `${Math.ceil(usage.memoryBytes / 1024)}Ki` },
  }
  if (name !== undefined) return metrics
  return { kind: 'NodeMetricsList', apiVersion, metadata: {}, items: [metrics] }
}

/** The routes of HTTP servers in pods, below the pod's path. */
export function proxyRoutes({ resources }: Pick<ApiReaders, 'resources'>): readonly Route[] {
  const handle = async (call: Call): Promise<ApiResponse> => {
    const { request, names } = call
    refuseProxied(request)
    const [namespace = '', text = ''] = names
    const { pathname, search } = readTarget(request.target)
    const { parseProxyName, proxyAddress, proxyRequest } = await import('./proxy-request.ts')
    const name = parseProxyName(text)
    const pod = findRunningPod(resources.pods, namespace, name.name)
    const address = proxyAddress(pod, name)
    // With its escapes, as the server in the pod reads them.
    const segments = pathname.split('/')
    const base = segments.slice(0, ownSegments).join('/')
    const rest = segments.slice(ownSegments).join('/')
    if (segments.length === ownSegments && request.method === 'GET')
      return { ...jsonResponse({}, 301), headers: { location: `${base}/${search}` } }
    return proxyRequest(request, { scheme: name.scheme, ...address, path: `/${rest}${search}`, base })
  }
  return (['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const).map((method) => ({
    method,
    pattern: '/api/v1/namespaces/*/pods/*/proxy/**',
    needsPods: true,
    handle,
  }))
}

/** `/api/v1/namespaces/NS/pods/NAME/proxy`, with the empty one before the first slash. */
const ownSegments = 8
