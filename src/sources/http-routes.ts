import type { SecureContext } from 'node:tls'
import type { Dispatcher } from 'undici'
import type { Environment } from './choose-proxy.ts'
import { chooseProxy } from './choose-proxy.ts'

/** The way to a server. */
export interface HttpRoute {
  readonly dispatcher: Dispatcher
  /** The proxy that it leads through, as it may be shown. */
  readonly proxy: string | undefined
}

/** The ways to servers: direct, or through the proxies that the environment names. */
export class HttpRoutes {
  readonly #env: Environment
  readonly #dispatchers = new Map<string, Dispatcher>()

  constructor(env: Environment) {
    this.#env = env
  }

  /** Throws PoddError BAD_PROXY. */
  async find(url: URL): Promise<HttpRoute> {
    const proxy = chooseProxy(url, this.#env)
    const isSecure = url.protocol === 'https:' || proxy?.protocol === 'https:'
    const key = JSON.stringify([proxy, isSecure])
    const dispatcher = this.#dispatchers.get(key) ?? (await openDispatcher(proxy, isSecure))
    this.#dispatchers.set(key, dispatcher)
    return { dispatcher, proxy: proxy?.origin }
  }

  async destroy(): Promise<void> {
    await Promise.all([...this.#dispatchers.values()].map((dispatcher) => dispatcher.destroy()))
  }
}

async function openDispatcher(proxy: URL | undefined, isSecure: boolean): Promise<Dispatcher> {
  const { Agent, Pool, ProxyAgent } = await import('undici')
  const tls = isSecure ? { secureContext: await loadTrustedAuthorities() } : undefined
  // No connection outlives its request: a period is longer than servers keep one open.
  if (proxy === undefined) return new Agent({ pipelining: 0, ...(tls && { connect: tls }) })
  return new ProxyAgent({
    uri: proxy.href,
    factory: (origin, options) => new Pool(origin, Object.assign({}, options, { pipelining: 0 })),
    ...(tls && { requestTls: tls, proxyTls: tls }),
  })
}

/**
 * What the certificate of an https server is held against: the authorities that this host trusts, as
 * update-ca-certificates keeps them or `SSL_CERT_FILE` names them, with those of `NODE_EXTRA_CA_CERTS`.
 * Where the host has none at all, those that come with Node.
 */
async function loadTrustedAuthorities(): Promise<SecureContext> {
  const { createSecureContext, getCACertificates } = await import('node:tls')
  const system = getCACertificates('system')
  const ca = system.length === 0 ? getCACertificates('default') : [...system, ...getCACertificates('extra')]
  return createSecureContext({ ca })
}
