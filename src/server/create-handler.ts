import type { Duplex } from 'node:stream'
import { computedResources, toApiResource } from '../api/served-kind.ts'
import { derivedKinds } from '../api/derived-kinds.ts'
import { servedKinds } from '../api/served-kinds.ts'
import type { Clock } from '../base/clock.ts'
import { PoddError } from '../base/errors.ts'
import type { Logger } from '../base/logger.ts'
import { systemRandom } from '../base/random.ts'
import { accessRoutes } from './access-routes.ts'
import { healthRoutes } from './health-routes.ts'
import { imageRoutes } from './image-routes.ts'
import type { NetworkApi } from './network-api.ts'
import { podRoutes } from './pod-routes.ts'
import { poddRoutes } from './podd-routes.ts'
import { discoveryRoutes } from './discovery/discovery-routes.ts'
import { versionInfo } from './discovery/version-info.ts'
import { kubeletRoutes } from './kubelet/kubelet-routes.ts'
import { pageRoutes } from './page/page-routes.ts'
import { PodLogs } from './pods/pod-logs.ts'
import { proxyRoutes } from './pods/proxy-routes.ts'
import { readAttributes } from './access/attributes.ts'
import { impersonate } from './access/impersonate.ts'
import { refuseAccess } from './access/refuse-access.ts'
import { refuseForeignSite } from './requests/refuse-foreign-site.ts'
import { jsonResponse, withoutQuery } from './requests/api-request.ts'
import type { ApiHandler, ApiRequest, ApiResponse } from './requests/api-request.ts'
import type { ApiReaders } from './requests/readers.ts'
import { decodePath, findRoute, readTarget } from './requests/route.ts'
import type { Route } from './requests/route.ts'
import { reviewRoutes } from './reviews/review-routes.ts'
import { statusResponse } from './requests/status-response.ts'
import { withNodeLease } from './resources/derived-readers.ts'
import { resourceRoutes } from './resources/resource-routes.ts'
import { WatchLines } from './resources/watch-lines.ts'
import { asksForWatch, openWatch } from './streams/watch-stream.ts'
import { PodStreams } from './streams/pod-streams.ts'
import { writeRoutes } from './writing/write-routes.ts'

export interface HandlerOptions {
  /** Undefined where podd listens on its socket only. */
  readonly network?: Pick<NetworkApi, 'kubeconfig'> | undefined
  readonly podLogsDir: string
  readonly readers: ApiReaders
  readonly clock: Clock
  readonly logger: Logger
}

/** What is served, from requests to answers; src/api/routes.ts tells the same in words. Knows no sockets. */
export function createHandler({
  podLogsDir,
  readers: given,
  network,
  clock,
  logger,
}: HandlerOptions): ApiHandler {
  const readers = withNodeLease(given, clock)
  const pods = readers.resources.pods
  const logs = new PodLogs({ podLogsDir, pods: pods.reader, clock })
  const streams = new PodStreams({ readers, logs, clock })
  const routes: readonly Route[] = [
    ...healthRoutes(readers.health),
    ...kubeletRoutes(readers),
    { method: 'GET', pattern: '/version', handle: () => jsonResponse(versionInfo()) },
    ...discoveryRoutes([
      ...[...servedKinds, ...derivedKinds].map((kind) => toApiResource(kind)),
      ...computedResources,
    ]),
    ...resourceRoutes(readers, new WatchLines(), systemRandom),
    ...(readers.writer === undefined
      ? []
      : writeRoutes(readers, { writer: readers.writer, random: systemRandom })),
    ...podRoutes(readers, logs),
    ...proxyRoutes(readers),
    ...imageRoutes(readers.images),
    ...poddRoutes(readers),
    ...accessRoutes(network),
    ...reviewRoutes(),
    ...(readers.page === undefined ? [] : pageRoutes(readers.page)),
  ]

  /** The route of a request, with the identity that it acts as. Throws ApiError. */
  function admit(given: ApiRequest, request: ApiRequest): URL {
    refuseForeignSite(given)
    return judge(request)
  }

  function toResponse(request: ApiRequest, error: unknown): ApiResponse {
    // An unexpected error is a defect: it is logged with its stack.
    if (!(error instanceof PoddError) && !request.signal.aborted)
      logger.error({ path: withoutQuery(request.target), err: error }, 'API request failed')
    return statusResponse(error)
  }

  async function answer(given: ApiRequest): Promise<ApiResponse> {
    const request = { ...given, identity: impersonate(given.identity, given.headers) }
    const { pathname, searchParams: query } = admit(given, request)
    const { route, names } = findRoute(routes, request.method, pathname)
    if (route.needsPods === true) await pods.whenListed()
    return route.handle({ request, query, names, clock, signal: request.signal })
  }

  return {
    handle: (request) => answer(request).catch((error: unknown) => toResponse(request, error)),
    upgrades: (headers) => streams.upgrades(headers),
    async open(request: ApiRequest, connection: Duplex) {
      try {
        const url = admit(request, {
          ...request,
          identity: impersonate(request.identity, request.headers),
        })
        if (!asksForWatch(request, url)) return await streams.open(request, connection)
        return await openWatch(request, connection, (asked) => answer(asked))
      } catch (error) {
        return toResponse(request, error)
      }
    },
  }
}

/** The route of a request. Throws ApiError where the client may not make it. */
function judge({ method, target, identity }: ApiRequest): URL {
  const url = readTarget(target)
  const [, ...segments] = decodePath(url.pathname)
  refuseAccess(identity, readAttributes(method, url.pathname, segments, url.searchParams))
  return url
}
