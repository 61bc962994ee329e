import { once } from 'node:events'
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/logger.ts'
import { formatAddress } from '../config/api-options.ts'
import type { ListenAddress } from '../config/api-options.ts'
import { healthRoutes } from './routes/health-routes.ts'
import { readOnlyRoutes } from './metrics/kubelet-routes.ts'
import { createHttpListener } from './http/http-listener.ts'
import { ServedPort, cannotListen } from './http/listen.ts'
import type { ApiHandler } from './requests/request.ts'
import { anonymous, statusResponse } from './requests/request.ts'
import { findRoute, readTarget } from './requests/route.ts'
import type { ApiReaders } from './requests/readers.ts'

/** The largest head of a request; scrapers send little. */
const maxHeaderBytes = 16 * 1024

/** The kubelet's read-only port: metrics, stats and pods over plain HTTP, without authentication. */
export function readOnlyPort(
  address: ListenAddress,
  readers: ApiReaders,
  clock: Clock,
  logger: Logger,
): ServedPort {
  const listener = createHttpListener({
    handler: readOnlyHandler(readers, clock),
    identify: () => anonymous,
    maxHeaderBytes,
    clock,
    logger,
  })
  return new ServedPort('readOnlyPort', address, async () => {
    const listening = once(listener.server, 'listening')
    listener.server.listen(address.port, address.host)
    await listening.catch((error: unknown) => {
      throw cannotListen(address, 'readOnlyPort', error)
    })
    logger.info({ path: formatAddress(address) }, 'the read-only port listens')
    return listener
  })
}

function readOnlyHandler(readers: ApiReaders, clock: Clock): ApiHandler {
  const routes = [...healthRoutes(readers.health), ...readOnlyRoutes(readers)]
  const answer: ApiHandler['handle'] = async (request) => {
    const { pathname, searchParams: query } = readTarget(request.target)
    const { route, names } = findRoute(routes, request.method, pathname)
    if (route.needsPods === true) await readers.whenListed('pods')
    return route.handle({ request, query, names, clock, signal: request.signal })
  }
  return {
    handle: (request) => answer(request).catch((error: unknown) => statusResponse(error)),
    upgrades: () => false,
    open: async () => ({ status: 404, contentType: 'text/plain', body: '' }),
  }
}
