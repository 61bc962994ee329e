import type { Clock } from '../base/clock.ts'
import { errorMessage } from '../base/errors.ts'
import type { Logger } from '../base/logger.ts'
import { healthRoutes } from './health-routes.ts'
import { kubeletRoutes } from './kubelet/kubelet-routes.ts'
import { createHttpListener } from './listeners/http-listener.ts'
import type { HttpListener } from './listeners/http-listener.ts'
import type { ApiHandler } from './requests/api-request.ts'
import { anonymous } from './requests/identity.ts'
import type { ApiReaders } from './requests/readers.ts'
import { findRoute, readTarget } from './requests/route.ts'
import { statusResponse } from './requests/status-response.ts'

export interface ReadOnlyPortOptions {
  readonly address: { readonly host: string; readonly port: number }
  readonly readers: ApiReaders
  readonly clock: Clock
  readonly logger: Logger
}

/** The largest head of a request; scrapers send little. */
const mostHeaderBytes = 16 * 1024

/** An address may be assigned only later, such as a VPN's. */
const retryMs = 10_000

/** The kubelet's read-only port: metrics, stats and pods over plain HTTP, without authentication. */
export class ReadOnlyPort {
  readonly #options: ReadOnlyPortOptions
  readonly #listener: HttpListener
  readonly #stop = new AbortController()

  constructor(options: ReadOnlyPortOptions) {
    const { readers, clock, logger } = options
    this.#options = options
    this.#listener = createHttpListener({
      handler: readOnlyHandler(readers, clock),
      identify: () => anonymous,
      mostHeaderBytes,
      clock,
      logger,
    })
  }

  /** Listens, or keeps trying; resolves after the first attempt. */
  async listen(): Promise<void> {
    if (!(await this.#attempt())) void this.#retry()
  }

  async close(graceMs: number): Promise<void> {
    this.#stop.abort()
    await this.#listener.close(graceMs)
  }

  async #attempt(): Promise<boolean> {
    const { address, logger } = this.#options
    const { server } = this.#listener
    const path = `${address.host}:${address.port}`
    try {
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject)
        server.listen(address.port, address.host, () => {
          server.off('error', reject)
          resolve()
        })
      })
      logger.info({ path }, 'the read-only port listens')
      return true
    } catch (error) {
      logger.error(
        { path, reason: errorMessage(error) },
        'cannot listen on the read-only port; podd keeps trying',
      )
      return false
    }
  }

  async #retry(): Promise<void> {
    try {
      do await this.#options.clock.sleep(retryMs, this.#stop.signal)
      while (!(await this.#attempt()))
    } catch {
      // It was closed during the wait.
    }
  }
}

function readOnlyHandler(readers: ApiReaders, clock: Clock): ApiHandler {
  const routes = [...healthRoutes(readers.health), ...kubeletRoutes(readers)]
  const answer: ApiHandler['handle'] = async (request) => {
    const { pathname, searchParams: query } = readTarget(request.target)
    const { route, names } = findRoute(routes, request.method, pathname)
    if (route.needsPods === true) await readers.resources.pods.whenListed()
    return route.handle({ request, query, names, clock, signal: request.signal })
  }
  return {
    handle: (request) => answer(request).catch((error: unknown) => statusResponse(error)),
    upgrades: () => false,
    open: async () => ({ status: 404, contentType: 'text/plain', body: '' }),
  }
}
