import type { Dispatcher } from 'undici'
import type { Environment } from './choose-proxy.ts'
import { chooseProxy } from './choose-proxy.ts'
import type { TlsFiles } from './tls-files.ts'
import { fingerprintTlsFiles, loadTls } from './tls-files.ts'

/** A connection to a server. */
export interface HttpRoute {
  readonly dispatcher: Dispatcher
  /** The proxy in use, as it may be shown. */
  readonly proxy: string | undefined
}

export interface RouteOptions {
  /** All requests are sent to this unix socket. */
  readonly socketPath?: string | undefined
  readonly tls?: TlsFiles
}

/** Connections to servers: direct, through a unix socket, or through the proxies of the environment. */
export class HttpRoutes {
  readonly #env: Environment
  readonly #options: RouteOptions
  #dispatchers = new Map<string, Dispatcher>()
  #tlsFingerprint = ''

  constructor(env: Environment, options: RouteOptions = {}) {
    this.#env = env
    this.#options = options
  }

  /**
   * Throws PoddError BAD_PROXY, SOURCE_FILE.
   * @param isOwn whether the server is the configured one, which alone sees the client certificate
   */
  async find(url: URL, isOwn = true): Promise<HttpRoute> {
    const { socketPath, tls = {} } = this.#options
    const proxy = socketPath === undefined ? chooseProxy(url, this.#env) : undefined
    const isSecure = url.protocol === 'https:' || proxy?.protocol === 'https:'
    if (isSecure) await this.#followFiles(tls)
    const key = JSON.stringify([proxy, isSecure, isOwn])
    const dispatcher =
      this.#dispatchers.get(key) ??
      (await openDispatcher({
        proxy,
        socketPath,
        secureContext: isSecure ? await loadTls(tls, isOwn) : undefined,
      }))
    this.#dispatchers.set(key, dispatcher)
    return { dispatcher, proxy: proxy?.origin }
  }

  /**
   * Ends all connections; the next request gets new ones. After a failure too: what undici refuses to send, and a request
   * that was given up while it connected, may hold up the requests behind it.
   */
  async destroy(): Promise<void> {
    const dispatchers = [...this.#dispatchers.values()]
    this.#dispatchers = new Map()
    await Promise.all(dispatchers.map((dispatcher) => dispatcher.destroy()))
  }

  /** Connections are recreated after a certificate was replaced. */
  async #followFiles(tls: TlsFiles): Promise<void> {
    const fingerprint = await fingerprintTlsFiles(tls)
    if (fingerprint !== this.#tlsFingerprint) await this.destroy()
    this.#tlsFingerprint = fingerprint
  }
}

interface DispatcherOptions {
  readonly proxy: URL | undefined
  readonly socketPath: string | undefined
  readonly secureContext: Awaited<ReturnType<typeof loadTls>> | undefined
}

async function openDispatcher({ proxy, socketPath, secureContext }: DispatcherOptions): Promise<Dispatcher> {
  const { Agent, Pool, ProxyAgent } = await import('undici')
  const tls = secureContext === undefined ? undefined : { secureContext, allowH2: false }
  // No connection outlives its request: a period is longer than servers keep one open, and one whose peer is gone would
  // be used until the kernel gives it up. HTTP/2 would keep it. A server may delay a response within the source's own
  // deadline.
  const own = { pipelining: 0, headersTimeout: 0, bodyTimeout: 0, allowH2: false }
  if (socketPath !== undefined) return new Agent({ ...own, connect: { socketPath } })
  if (proxy === undefined) return new Agent({ ...own, ...(tls && { connect: tls }) })
  return new ProxyAgent({
    uri: proxy.href,
    factory: (origin, options) => new Pool(origin, Object.assign({}, options, own)),
    ...(tls && { requestTls: tls, proxyTls: tls }),
  })
}
