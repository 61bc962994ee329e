import { stat } from 'node:fs/promises'
import { BlockList, isIP } from 'node:net'
import type { Readable } from 'node:stream'
import type { SecureContext } from 'node:tls'
import type { Dispatcher } from 'undici'
import { errorMessage, PoddError } from '../../base/errors.ts'
import { isRefusedByUndici, lenientParsing, nodeHttp } from '../../base/http.ts'
import { readAtOnce } from '../../base/read-bounded.ts'

/** The way to a server. */
export interface HttpRoute {
  /**
   * Sends one request, without following redirects; the body of the response is to be read or destroyed. What a server sends in
   * a form that undici refuses, Node's client takes where no proxy is between: the server is sent the request again, and
   * the next ones by that client alone.
   */
  request(request: RoutedRequest): Promise<RoutedResponse>
  /** The proxy in use, as it may be shown. */
  readonly proxy: string | undefined
}

interface RoutedRequest {
  readonly url: URL
  readonly method: 'GET' | 'POST'
  readonly headers?: Record<string, string | string[]>
  readonly body?: Uint8Array
  readonly signal: AbortSignal
}

export interface RoutedResponse {
  readonly statusCode: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Readable
}

/** How connections to a server are made. */
interface Connecting {
  readonly dispatcher: Dispatcher
  readonly socketPath: string | undefined
  readonly secureContext: SecureContext | undefined
}

/** Connections to servers: direct, through a unix socket, or through the proxies of the environment. */
export class HttpRoutes {
  readonly #env: Environment
  readonly #socketPath: string | undefined
  readonly #tls: TlsFiles
  #connecting = new Map<string, Connecting>()
  /** The servers whose answers undici refused. */
  readonly #lenient = new Set<string>()
  #tlsFingerprint = ''

  /** @param socketPath all requests are sent to this unix socket */
  constructor(env: Environment, socketPath?: string, tls: TlsFiles = {}) {
    this.#env = env
    this.#socketPath = socketPath
    this.#tls = tls
  }

  /**
   * Throws PoddError BAD_PROXY, SOURCE_FILE.
   * @param isOwn whether the server is the configured one, which alone sees the client certificate
   */
  async find(url: URL, isOwn = true): Promise<HttpRoute> {
    const proxy = this.#socketPath === undefined ? chooseProxy(url, this.#env) : undefined
    const isSecure = url.protocol === 'https:' || proxy?.protocol === 'https:'
    if (isSecure) await this.#followFiles()
    const key = JSON.stringify([proxy, isSecure, isOwn])
    const connecting = this.#connecting.get(key) ?? (await this.#connect(proxy, isSecure, isOwn))
    this.#connecting.set(key, connecting)
    const request = async (request: RoutedRequest): Promise<RoutedResponse> => {
      const { origin } = request.url
      if (!this.#lenient.has(origin)) {
        const strictly = await sendStrictly(connecting.dispatcher, request).catch((error: unknown) => {
          if (proxy !== undefined || !isRefusedByUndici(error, false)) throw error
        })
        if (strictly !== undefined) return strictly
      }
      const response = await sendLeniently(connecting, request)
      this.#lenient.add(origin)
      return response
    }
    return { request, proxy: proxy?.origin }
  }

  async #connect(proxy: URL | undefined, isSecure: boolean, isOwn: boolean): Promise<Connecting> {
    const secureContext = isSecure ? await loadTls(this.#tls, isOwn) : undefined
    const socketPath = this.#socketPath
    return {
      dispatcher: await openDispatcher(proxy, socketPath, secureContext),
      socketPath,
      secureContext,
    }
  }

  /**
   * Ends all connections; the next request gets new ones. After a failure too: what undici refuses to send, and a request
   * that was given up while it connected, may hold up the requests behind it.
   */
  async destroy(): Promise<void> {
    const all = [...this.#connecting.values()]
    this.#connecting = new Map()
    this.#lenient.clear()
    await Promise.all(all.map(({ dispatcher }) => dispatcher.destroy()))
  }

  /** Connections are recreated after a certificate was replaced. */
  async #followFiles(): Promise<void> {
    const fingerprint = await fingerprintTlsFiles(this.#tls)
    if (fingerprint !== this.#tlsFingerprint) await this.destroy()
    this.#tlsFingerprint = fingerprint
  }
}

function sendStrictly(dispatcher: Dispatcher, { url, ...request }: RoutedRequest): Promise<RoutedResponse> {
  return dispatcher.request({ origin: url.origin, path: `${url.pathname}${url.search}`, ...request })
}

function sendLeniently(
  { socketPath, secureContext }: Connecting,
  { url, method, headers, body, signal }: RoutedRequest,
): Promise<RoutedResponse> {
  const options = {
    ...(socketPath === undefined ? { host: unbracket(url.hostname), port: url.port } : { socketPath }),
    path: `${url.pathname}${url.search}`,
    method,
    headers: { ...headers, host: url.host, ...(body && { 'content-length': body.byteLength }) },
    signal,
    agent: false,
    ...lenientParsing,
  }
  const secure = { ...options, secureContext }
  const sent =
    url.protocol === 'https:'
      ? process.getBuiltinModule('node:https').request(secure)
      : nodeHttp.request(options)
  return new Promise((resolve, reject) => {
    sent.once('response', (response) => {
      const { statusCode = 0, headers: received } = response
      resolve({ statusCode, headers: received, body: response })
    })
    sent.once('error', reject)
    sent.end(body)
  })
}

async function openDispatcher(
  proxy: URL | undefined,
  socketPath: string | undefined,
  secureContext: SecureContext | undefined,
): Promise<Dispatcher> {
  const { Agent, Pool, ProxyAgent } = await import('undici')
  const tls = secureContext === undefined ? undefined : { secureContext, allowH2: false }
  // No connection outlives its request: a period is longer than servers keep one open, and one whose peer is gone would
  // be used until the kernel gives it up. HTTP/2 would keep it. A server may delay a response within the source's own
  // deadline.
  const { maxHeaderSize } = lenientParsing
  const own = { pipelining: 0, headersTimeout: 0, bodyTimeout: 0, allowH2: false, maxHeaderSize }
  if (socketPath !== undefined) return new Agent({ ...own, connect: { socketPath } })
  if (proxy === undefined) return new Agent({ ...own, ...(tls && { connect: tls }) })
  return new ProxyAgent({
    uri: proxy.href,
    factory: (origin, options) => new Pool(origin, Object.assign({}, options, own)),
    ...(tls && { requestTls: tls, proxyTls: tls }),
  })
}

export type Environment = Readonly<Record<string, string | undefined>>

/**
 * The proxy through which a URL is asked for; undefined for none. As the kubelet chooses
 * (golang.org/x/net/http/httpproxy): HTTP_PROXY for http, HTTPS_PROXY for https, in capitals or small letters, with or
 * without a scheme; none for the loopback and for what NO_PROXY names. Throws PoddError BAD_PROXY.
 */
export function chooseProxy(url: URL, env: Environment): URL | undefined {
  const name = url.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY'
  const text = readVariable(env, name)
  if (text === '' || isExempt(url, readVariable(env, 'NO_PROXY'))) return undefined
  const address = text.includes('://') ? text : `http://${text}`
  const proxy = URL.canParse(address) ? new URL(address) : undefined
  if (proxy !== undefined && ['http:', 'https:'].includes(proxy.protocol)) return proxy
  // What it holds may have a password in it.
  throw new PoddError('BAD_PROXY', `${name} in podd's environment names no http or https proxy`, {
    hint: 'write it as http://HOST:PORT',
  })
}

function readVariable(env: Environment, name: string): string {
  return [env[name], env[name.toLowerCase()]].find((text) => text !== undefined && text !== '') ?? ''
}

function isExempt(url: URL, list: string): boolean {
  const host = unbracket(url.hostname)
  if (host === 'localhost' || isInside(host, '127.0.0.0', 8) || isInside(host, '::1', 128)) return true
  const port = url.port === '' ? (url.protocol === 'https:' ? '443' : '80') : url.port
  return list
    .split(',')
    .map((entry) => entry.trim().toLowerCase())
    .some((entry) => entry !== '' && matches(entry, host, port))
}

/** One entry of NO_PROXY: `*`, a network, or an address, a name or the end of one (`.example.com`), with or without a port. */
function matches(entry: string, host: string, port: string): boolean {
  if (entry === '*') return true
  const [, network = '', prefix] = /^(.+)\/(\d+)$/u.exec(entry) ?? []
  if (prefix !== undefined) return isInside(host, network, Number(prefix))
  const [, named = entry, ownPort] = /^(\[.+\]|[^:]*):(\d+)$/u.exec(entry) ?? []
  if (ownPort !== undefined && ownPort !== port) return false
  const name = unbracket(named).replace(/^\*\./u, '.')
  if (isIP(name) !== 0) return isInside(host, name, isIP(name) === 4 ? 32 : 128)
  if (name === '') return false
  return name.startsWith('.') ? host.endsWith(name) : host === name || host.endsWith(`.${name}`)
}

function isInside(host: string, network: string, prefixBits: number): boolean {
  const family = isIP(network)
  if (family === 0 || isIP(host) !== family || prefixBits > (family === 4 ? 32 : 128)) return false
  const type = family === 4 ? 'ipv4' : 'ipv6'
  const list = new BlockList()
  list.addSubnet(network, prefixBits, type)
  return list.check(host, type)
}

function unbracket(host: string): string {
  return host.replace(/^\[(.+)\]$/u, '$1')
}

/** PEM files, which may be replaced at any time. */
export interface TlsFiles {
  /** The authorities that may have signed the server's certificate, in place of those that this host trusts. */
  readonly caFile?: string | undefined
  /** The client certificate and its key. */
  readonly certFile?: string | undefined
  readonly keyFile?: string | undefined
}

/** A hash of the files' content. Throws PoddError SOURCE_FILE. */
async function fingerprintTlsFiles({ caFile, certFile, keyFile }: TlsFiles): Promise<string> {
  const paths = [caFile, certFile, keyFile].filter((path) => path !== undefined)
  const found = await Promise.all(
    paths.map(async (path) => {
      const { ino, size, mtimeNs } = await readOr(path, () => stat(path, { bigint: true }))
      return `${ino}:${size}:${mtimeNs}`
    }),
  )
  return found.join(' ')
}

/**
 * The TLS context of connections: the authorities of `caFile`, else those that this host trusts, as
 * update-ca-certificates keeps them or `SSL_CERT_FILE` names them, with those of `NODE_EXTRA_CA_CERTS`; where the host
 * has none at all, those that come with Node. Throws PoddError SOURCE_FILE.
 * @param isOwn whether the server is the configured one: no other gets the client certificate
 */
async function loadTls(files: TlsFiles, isOwn: boolean): Promise<SecureContext> {
  const { createSecureContext, getCACertificates } = await import('node:tls')
  const { caFile, certFile, keyFile } = files
  const system = getCACertificates('system')
  const trusted =
    system.length === 0 ? getCACertificates('default') : [...system, ...getCACertificates('extra')]
  const ca = caFile === undefined ? trusted : await readText(caFile)
  if (!isOwn || certFile === undefined || keyFile === undefined) return createSecureContext({ ca })
  const [cert, key] = await Promise.all([readText(certFile), readText(keyFile)])
  try {
    return createSecureContext({ ca, cert, key })
  } catch (error) {
    // While both are being replaced, one may be the new one and the other not.
    throw unusable(`${certFile} and ${keyFile}`, error)
  }
}

/** The largest file that a source needs for its requests: all authorities of a host take a quarter of it. */
const maxFileBytes = 1024 * 1024

/** The text of a file that a source needs for its requests. Throws PoddError SOURCE_FILE. */
export async function readText(path: string): Promise<string> {
  const bytes = await readOr(path, () => readAtOnce(path, maxFileBytes))
  if (bytes.byteLength <= maxFileBytes) return bytes.toString('utf8')
  throw unusable(path, new Error(`it is larger than ${maxFileBytes / 2 ** 20} MiB`))
}

async function readOr<T>(path: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    throw unusable(path, error)
  }
}

/** For a file of a source's that can't be used as it is. */
export function unusable(what: string, error: unknown): PoddError {
  return new PoddError('SOURCE_FILE', `cannot use ${what}: ${errorMessage(error)}`, {
    cause: error,
    hint: 'podd reads it again with the next request.',
  })
}
