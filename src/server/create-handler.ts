import type { Duplex } from 'node:stream'
import { derivedKinds } from '../api/derived-kinds.ts'
import { computedResources, toApiResource } from '../api/served-kind.ts'
import { servedKinds } from '../api/served-kinds.ts'
import type { Clock } from '../base/clock.ts'
import { PoddError } from '../base/errors.ts'
import type { Logger } from '../base/logger.ts'
import { systemRandom } from '../base/random.ts'
import { accessRoutes, reviewRoutes } from './access-routes.ts'
import { impersonate, readAttributes, refuseAccess } from './access/authorize.ts'
import { refuseForeignSite } from './access/browser-requests.ts'
import { kubeletRoutes } from './metrics/kubelet-routes.ts'
import type { NetworkApi } from './network-api.ts'
import type { ApiReaders, PageReader } from './requests/readers.ts'
import { jsonResponse, statusResponse, withoutQuery } from './requests/request.ts'
import { decodePath, findRoute, get, readTarget, withoutLastSlash } from './requests/route.ts'
import type { ApiHandler, ApiRequest, ApiResponse } from './requests/request.ts'
import type { Route } from './requests/route.ts'
import { withNodeLease } from './resources/derived-readers.ts'
import { resourceRoutes } from './resources/resource-routes.ts'
import { WatchLines } from './resources/watch-resources.ts'
import { discoveryRoutes, versionInfo } from './routes/discovery-routes.ts'
import { healthRoutes } from './routes/health-routes.ts'
import { imageRoutes } from './routes/image-routes.ts'
import { podRoutes, proxyRoutes } from './routes/pod-routes.ts'
import { poddRoutes } from './routes/podd-routes.ts'
import { PodStreams } from './streams/pod-streams.ts'
import { asksForWatch, openWatch } from './streams/web-socket.ts'
import { writeRoutes } from './writing/write-routes.ts'

/**
 * What is served, from requests to answers; src/api/routes.ts tells the same in words. Knows no sockets.
 * @param network undefined where podd listens on its socket only
 */
export function createHandler(
  given: ApiReaders,
  podLogsDir: string,
  network: Pick<NetworkApi, 'kubeconfig'> | undefined,
  clock: Clock,
  logger: Logger,
): ApiHandler {
  const readers = withNodeLease(given, clock)
  const streams = new PodStreams(readers, podLogsDir, clock)
  const routes: readonly Route[] = [
    ...healthRoutes(readers.health),
    ...kubeletRoutes(readers),
    get('/version', () => jsonResponse(versionInfo())),
    ...discoveryRoutes([
      ...[...servedKinds, ...derivedKinds].map((kind) => toApiResource(kind)),
      ...computedResources,
    ]),
    ...resourceRoutes(readers, new WatchLines(), systemRandom),
    ...(readers.writer === undefined ? [] : writeRoutes(readers, readers.writer, systemRandom)),
    ...podRoutes(readers, podLogsDir),
    ...proxyRoutes(readers),
    ...imageRoutes(readers.images),
    ...poddRoutes(readers),
    ...accessRoutes(network),
    ...reviewRoutes(),
    ...(readers.page === undefined ? [] : pageRoutes(readers.page)),
  ]

  /** The URL of a request. Throws ApiError where the client may not make it. */
  function admit(given: ApiRequest, { method, target, identity }: ApiRequest): URL {
    refuseForeignSite(given)
    const url = readTarget(target)
    const path = withoutLastSlash(method, url.pathname)
    const [, ...segments] = decodePath(path)
    refuseAccess(identity, readAttributes(method, path, segments, url.searchParams))
    return url
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
    if (route.needsPods === true) await readers.whenListed('pods')
    return route.handle({ request, query, names, clock, signal: request.signal })
  }

  return {
    handle: (request) => answer(request).catch((error: unknown) => toResponse(request, error)),
    upgrades: (headers) => streams.upgrades(headers),
    async open(request: ApiRequest, connection: Duplex) {
      try {
        const asked = { ...request, identity: impersonate(request.identity, request.headers) }
        const url = admit(request, asked)
        if (!asksForWatch(request, url)) return await streams.open(request, connection)
        return await openWatch(request, connection, answer)
      } catch (error) {
        return toResponse(request, error)
      }
    },
  }
}

/**
 * The routes of the status page and of the data that only it shows; it gets the rest from the API, as other clients do.
 */
function pageRoutes(page: PageReader): readonly Route[] {
  const file = (pattern: string): Route =>
    get(pattern, async ({ request, names: [name = ''] }) => {
      const { readPageFile } = await import('./routes/page-files.ts')
      return readPageFile(page.directory, name, request.identity)
    })
  return [file('/ui'), file('/ui/*'), get('/podd/v1/usage', () => jsonResponse(page.usage()))]
}
