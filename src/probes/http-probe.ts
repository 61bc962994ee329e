/*
 * HTTP as the kubelet's probes and lifecycle hooks send it: one GET over a fresh connection, no keep-alive, no proxy, no
 * certificate check, at most 10 redirects and 10 KiB of body (kubelet pkg/probe/http/http.go, 1.36).
 */
import type { ClientRequest } from 'node:http'
import { connect as connectTcp, isIP } from 'node:net'
import type { Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { buildConnector, Client } from 'undici'
import { errorCode, errorMessage } from '../base/errors.ts'
import { isRefusedByUndici, lenientParsing, nodeHttp } from '../base/http.ts'
import type { Probe } from '../pod/schema/container-schema.ts'
import { describeDialError, describeReadError, isOwnFault, joinHostPort } from './go-words.ts'
import {
  boundAttempt,
  failure,
  lookUpHost,
  maxOutputBytes,
  resolvePort,
  timedOut,
  unknown,
} from './probe-outcome.ts'
import type { AttemptBounds, ProbeBounds, ProbeOutcome, ProbeTarget } from './probe-outcome.ts'

/**
 * Succeeds on a status from 200 to 399; a redirect that leads off the host is a success with a warning (kubelet
 * pkg/probe/http/http.go DoHTTPProbe, 1.36). A failure's message never holds the body. A body that is truncated or
 * doesn't end in time is, as there, an error of the probe that proves nothing about the container.
 * @param userAgent where the manifest's headers name none: `kube-probe/<version>`
 */
export async function runHttpProbe(
  action: HttpGetAction,
  target: ProbeTarget,
  userAgent: string,
  bounds: ProbeBounds,
): Promise<ProbeOutcome> {
  const built = buildHttpRequest(action, target, userAgent)
  if (built.kind === 'invalid') return unknown(built.message)
  const got = await sendHttpGet(built.request, bounds, action)
  if (got.kind === 'error') {
    if (got.during !== 'answer') return { ...unknown(got.message), timedOut: got.timedOut }
    return got.timedOut ? timedOut(got.message) : failure(got.message)
  }
  const { status, body } = got
  if (status < 200 || status >= 400) return failure(`HTTP probe failed with statuscode: ${status}`)
  if (status < 300) return { result: 'success', output: body }
  return { result: 'warning', output: `Probe terminated redirects, Response body: ${body}` }
}

export type HttpHookResult =
  /** It was answered. `warning`: it took HTTP where HTTPS was asked for; the text of a `LifecycleHTTPFallback` event. */
  | { readonly kind: 'done'; readonly warning: string | undefined }
  | { readonly kind: 'failed'; readonly message: string }

/**
 * A lifecycle hook's GET. Any response counts as success, whatever its status; an HTTPS hook whose server speaks plain
 * HTTP is sent again so, without its Authorization header (kubelet pkg/kubelet/lifecycle/handlers.go runHTTPHandler,
 * 1.36). Never rejects.
 * @param userAgent where the manifest's headers name none: `kube-lifecycle/<version>`
 * @param bounds the kubelet sets no limit of its own: the remaining grace period, or a signal
 */
export async function runHttpHook(
  action: HttpGetAction,
  target: Pick<ProbeTarget, 'podIps' | 'ports'>,
  userAgent: string,
  bounds: AttemptBounds,
): Promise<HttpHookResult> {
  const built = buildHttpRequest(action, target, userAgent)
  if (built.kind === 'invalid') return { kind: 'failed', message: built.message }
  const got = await sendHttpGet(built.request, bounds)
  if (got.kind === 'response' || got.during === 'body') return { kind: 'done', warning: undefined }
  if (got.tlsMismatch) {
    const headers = built.request.headers.filter(([name]) => name.toLowerCase() !== 'authorization')
    const plain = await sendHttpGet({ ...built.request, scheme: 'http', headers }, bounds)
    if (plain.kind === 'response' || plain.during === 'body') {
      const at = joinHostPort(built.request.host, built.request.port)
      const warning = `request to HTTPS lifecycle hook ${at} got HTTP response, retry with HTTP succeeded`
      return { kind: 'done', warning }
    }
  }
  return { kind: 'failed', message: got.message }
}

/** Of probes and of lifecycle hooks alike. */
export type HttpGetAction = NonNullable<Probe['httpGet']>

interface HttpRequest {
  readonly scheme: 'http' | 'https'
  /** A name or an address, an IPv6 one without brackets. */
  readonly host: string
  readonly port: number
  /** With the query; begins with a slash. */
  readonly path: string
  /** Names as the manifest spells them; a name may come more than once. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** The Host header, if it isn't to be host and port. */
  readonly hostHeader: string | undefined
}

export type BuiltRequest =
  | { readonly kind: 'request'; readonly request: HttpRequest }
  | { readonly kind: 'invalid'; readonly message: string }

/** The request behind an `httpGet` (kubelet pkg/probe/http/request.go NewRequestForHTTPGetAction, 1.36). */
export function buildHttpRequest(
  action: HttpGetAction,
  target: Pick<ProbeTarget, 'podIps' | 'ports'>,
  userAgent: string,
): BuiltRequest {
  const resolved = resolvePort(action.port, target.ports)
  if (resolved.kind === 'invalid') return resolved
  const host = action.host || target.podIps[0]
  if (host === undefined) return { kind: 'invalid', message: 'the pod has no IP address yet' }
  return {
    kind: 'request',
    request: {
      scheme: action.scheme === 'HTTPS' ? 'https' : 'http',
      host,
      port: resolved.port,
      path: requestPath(action.path),
      headers: requestHeaders(action.httpHeaders, userAgent),
      hostHeader: action.httpHeaders.find(({ name }) => name.toLowerCase() === 'host')?.value || undefined,
    },
  }
}

/** As the kubelet prints it: default ports are shown too. */
export function requestUrl({ scheme, host, port, path }: HttpRequest): string {
  return `${scheme}://${joinHostPort(host, port)}${path}`
}

/** The path of a manifest may be relative, be a whole URL (only its path counts then), or hold what a request line can't. */
function requestPath(path: string): string {
  const local = path.replace(/^(?:[a-z][a-z0-9+.-]*:)?\/\/[^/?#]*/i, '').replace(/#.*$/s, '')
  const rooted = local.startsWith('/') ? local : `/${local}`
  return rooted.toWellFormed().replaceAll(/[^!-~]+/gu, (text) => encodeURIComponent(text))
}

/** Never sent, whatever the manifest says: Go's client leaves them out too. */
const unsentHeaders: ReadonlySet<string> = new Set(['host', 'content-length', 'transfer-encoding', 'trailer'])

function requestHeaders(
  given: HttpGetAction['httpHeaders'],
  userAgent: string,
): readonly (readonly [string, string])[] {
  const named = (wanted: string) => given.find(({ name }) => name.toLowerCase() === wanted)?.value
  // Set to nothing means: not sent.
  const dropped = ['user-agent', 'accept'].filter((name) => named(name) === '')
  const sent = given
    .filter(({ name }) => !unsentHeaders.has(name.toLowerCase()) && !dropped.includes(name.toLowerCase()))
    .map(({ name, value }): readonly [string, string] => [name, value])
  if (named('user-agent') === undefined) sent.push(['User-Agent', userAgent])
  if (named('accept') === undefined) sent.push(['Accept', '*/*'])
  return sent
}

/** A response's headers and as much of its body as is wanted. */
interface HttpAnswer {
  readonly kind: 'response'
  readonly status: number
  readonly location: string | undefined
  readonly body: string
}

interface HttpFailure {
  readonly kind: 'error'
  /** In Go's words, the URL included where there was no answer. */
  readonly message: string
  /** `answer`: none came. `body`: it broke off after its headers. `own`: this host had no means to ask. */
  readonly during: 'answer' | 'body' | 'own'
  readonly timedOut: boolean
  /** It was asked over TLS and answered without. */
  readonly tlsMismatch: boolean
  /** The server answered in a form that undici doesn't take. */
  readonly isMalformed: boolean
}

function httpFailure(
  message: string,
  during: HttpFailure['during'],
  more: Partial<Pick<HttpFailure, 'timedOut' | 'tlsMismatch' | 'isMalformed'>> = {},
): HttpFailure {
  const { timedOut = false, tlsMismatch = false, isMalformed = false } = more
  return { kind: 'error', message, during, timedOut, tlsMismatch, isMalformed }
}

/** A response as it comes in. */
class PartialAnswer {
  status = 0
  location: string | undefined
  readonly #chunks: Buffer[] = []
  #sizeBytes = 0

  /** Go's client follows no empty Location. */
  begin(status: number, location: string | undefined): void {
    this.status = status
    this.location = location || undefined
  }

  /** Gives whether that is all that is wanted. */
  add(chunk: Buffer): boolean {
    this.#chunks.push(chunk)
    this.#sizeBytes += chunk.length
    return this.#sizeBytes >= maxOutputBytes
  }

  get answer(): HttpAnswer {
    const { status, location } = this
    const body = Buffer.concat(this.#chunks).toString('utf8', 0, Math.min(this.#sizeBytes, maxOutputBytes))
    return { kind: 'response', status, location, body }
  }
}

const maxRedirects = 10

const redirectStatuses: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

/**
 * Returns the last response; a redirect only where it leads to another host or nowhere. Never rejects. The time limit
 * covers the whole chain of redirects.
 * @param action the probe, one of whose requests is sent at a time: its undici client is kept for the next one. Without it, a
 * hook: no request is sent twice
 */
async function sendHttpGet(
  request: HttpRequest,
  bounds: AttemptBounds,
  action?: HttpGetAction,
): Promise<HttpAnswer | HttpFailure> {
  // The load time doesn't count as the server's.
  const ClientClass = await loadClient()
  const { clock, timeoutMs, signal } = bounds
  const untilMs = timeoutMs === undefined ? undefined : clock.monotonicMs() + timeoutMs
  let current = request
  for (let redirects = 0; ; redirects += 1) {
    const leftMs = untilMs === undefined ? undefined : Math.max(0, untilMs - clock.monotonicMs())
    const keeper = redirects === 0 ? action : undefined
    const left = { clock, timeoutMs: leftMs, signal }
    const answer =
      action === undefined
        ? await sendOnce(ClientClass, current, left)
        : await sendTolerantly(ClientClass, current, left, keeper)
    if (answer.kind === 'error' || answer.location === undefined) return answer
    if (!redirectStatuses.has(answer.status)) return answer
    const next = redirectedRequest(request, current, answer.location)
    if (next === 'elsewhere') return answer
    if (next === 'invalid')
      return brokenChain(current, `failed to parse Location header "${answer.location}"`)
    if (redirects + 1 >= maxRedirects) return brokenChain(next, `stopped after ${maxRedirects} redirects`)
    current = next
  }
}

/** Where a redirect leads; one to another host name isn't followed, one to another port is. */
function redirectedRequest(
  first: HttpRequest,
  current: HttpRequest,
  location: string,
): HttpRequest | 'elsewhere' | 'invalid' {
  const from = requestUrl(current)
  if (!URL.canParse(location, from)) return 'invalid'
  const url = new URL(location, from)
  if (url.hostname !== new URL(requestUrl(first)).hostname) return 'elsewhere'
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'invalid'
  const scheme = url.protocol === 'https:' ? 'https' : 'http'
  return {
    ...current,
    scheme,
    port: url.port === '' ? (scheme === 'https' ? 443 : 80) : Number(url.port),
    path: `${url.pathname}${url.search}`,
    // A Host header of the manifest's outlives only redirects that name no host themselves.
    hostHeader: URL.canParse(location) ? undefined : current.hostHeader,
  }
}

function brokenChain(at: HttpRequest, message: string): HttpFailure {
  return httpFailure(asking(at) + message, 'answer')
}

let clientClass: typeof Client | undefined

/** undici is loaded by the first request. Node takes 0.2 ms to find a module that is loaded. */
async function loadClient(): Promise<typeof Client> {
  clientClass ??= (await import('undici')).Client
  return clientClass
}

/**
 * An undici client and the connection that it has opened. A client costs as much as the rest of a request does: that of a probe
 * is kept while its requests succeed; the connection never is.
 */
interface HttpClient {
  readonly client: Client
  readonly connection: HttpConnection
  readonly endpoint: Endpoint
}

const keptClients = new WeakMap<HttpGetAction, HttpClient>()

/** The kept client, which is the caller's alone from then on, or a new one. */
function takeClient(
  ClientClass: typeof Client,
  request: HttpRequest,
  keeper: HttpGetAction | undefined,
): HttpClient {
  const kept = keeper && keptClients.get(keeper)
  if (keeper !== undefined) keptClients.delete(keeper)
  const { scheme, host, port } = request
  const { endpoint } = kept ?? {}
  if (kept !== undefined && endpoint?.scheme === scheme && endpoint.host === host && endpoint.port === port)
    return kept
  if (kept !== undefined) letGoOf(kept)
  const connection = createHttpConnection(request)
  // The name is never looked up: the connector knows where to go.
  const client = new ClientClass(`${scheme}://probed.invalid`, {
    connect: connection.connector,
    pipelining: 0,
    headersTimeout: 0,
    bodyTimeout: 0,
    maxHeaderSize: lenientParsing.maxHeaderSize,
  })
  return { client, connection, endpoint: { scheme, host, port } }
}

function letGoOf({ client, connection }: HttpClient): void {
  // Nobody waits for it any more, however it ends.
  client.destroy(letGo).catch(() => undefined)
  connection.destroy()
}

/** The probes whose servers answer in a form that undici doesn't take. */
const lenientProbes = new WeakSet<HttpGetAction>()

/**
 * One request of a probe on one connection, without following redirects. Never rejects. What small servers send, and Go's
 * client takes, undici refuses: lines that end in LF alone, folded headers, `100 Continue` that nobody waits for. Such a
 * server is asked again by Node's own client, which can be told to take these, and by that one first the next time.
 */
async function sendTolerantly(
  ClientClass: typeof Client,
  request: HttpRequest,
  bounds: AttemptBounds,
  keeper: HttpGetAction | undefined,
): Promise<HttpAnswer | HttpFailure> {
  const { clock, timeoutMs } = bounds
  const startMs = clock.monotonicMs()
  let first: HttpFailure | undefined
  if (keeper === undefined || !lenientProbes.has(keeper)) {
    const answer = await sendHttpRequest(ClientClass, request, bounds, keeper)
    if (answer.kind === 'response' || !answer.isMalformed) return answer
    first = answer
  }
  const leftMs = timeoutMs === undefined ? undefined : Math.max(0, startMs + timeoutMs - clock.monotonicMs())
  const second = await sendLeniently(request, { ...bounds, timeoutMs: leftMs })
  if (second.kind === 'response') {
    if (keeper !== undefined) lenientProbes.add(keeper)
    return second
  }
  if (keeper !== undefined) lenientProbes.delete(keeper)
  return first ?? second
}

/** A hook has effects: it can't be asked again where undici doesn't take the answer. HTTP/2 is spoken over TLS alone. */
function sendOnce(
  ClientClass: typeof Client,
  request: HttpRequest,
  bounds: AttemptBounds,
): Promise<HttpAnswer | HttpFailure> {
  return request.scheme === 'http'
    ? sendLeniently(request, bounds)
    : sendHttpRequest(ClientClass, request, bounds, undefined)
}

/**
 * One request within its bounds. Never rejects.
 * @param begin sends it, and settles with what comes of it; returns what ends it
 */
function attemptRequest(
  request: HttpRequest,
  bounds: AttemptBounds,
  begin: (partial: PartialAnswer, settle: (result: HttpAnswer | HttpFailure) => void) => () => void,
): Promise<HttpAnswer | HttpFailure> {
  const partial = new PartialAnswer()
  return boundAttempt<HttpAnswer | HttpFailure>(bounds, {
    begin: (settle) => begin(partial, settle),
    onTimeout: () => outOfTime(request, partial.status > 0),
    onAbort: () => httpFailure(`${asking(request)}context canceled`, 'own'),
  })
}

/** How Go's client begins what it says of a request without an answer. */
function asking(request: HttpRequest): string {
  return `Get "${requestUrl(request)}": `
}

/** By Node's own client with its lenient parser, which speaks no HTTP/2. */
function sendLeniently(request: HttpRequest, bounds: AttemptBounds): Promise<HttpAnswer | HttpFailure> {
  const { host, port } = request
  return attemptRequest(request, bounds, (partial, settle) => {
    const socket = openSocket(request, ['http/1.1'])
    let isConnected = false
    socket.once('connect', () => (isConnected = true))
    const onError = (error: Error): void => {
      if (partial.status > 0) settle(httpFailure(describeReadError(error, host, port), 'body'))
      else settle(unanswered(request, error, isConnected))
    }
    const cleanUp = (): void => {
      sent?.destroy()
      // After an upgrade it is nobody's.
      socket.destroy()
    }
    let sent: ClientRequest | undefined
    try {
      sent = nodeHttp.request({
        createConnection: () => socket,
        path: request.path,
        headers: wireHeaders(request),
        ...lenientParsing,
      })
    } catch (error) {
      // Headers that Node refuses to send: invalid names or values.
      settle(httpFailure(asking(request) + errorMessage(error), 'answer'))
      return cleanUp
    }
    sent.on('error', onError)
    sent.once('response', (response) => {
      partial.begin(response.statusCode ?? 0, response.headers.location)
      response.on('error', onError)
      response.on('data', (chunk: Buffer) => {
        if (partial.add(chunk)) settle(partial.answer)
      })
      response.once('end', () => settle(partial.answer))
    })
    sent.once('upgrade', ({ statusCode = 0 }) => {
      partial.begin(statusCode, undefined)
      settle(partial.answer)
    })
    sent.end()
    return cleanUp
  })
}

/** One request by undici. Never rejects. */
function sendHttpRequest(
  ClientClass: typeof Client,
  request: HttpRequest,
  bounds: AttemptBounds,
  keeper: HttpGetAction | undefined,
): Promise<HttpAnswer | HttpFailure> {
  const { host, port } = request
  return attemptRequest(request, bounds, (partial, settle) => {
    const taken = takeClient(ClientClass, request, keeper)
    let isWhole = false
    try {
      taken.client.dispatch(
        { method: 'GET', path: request.path, headers: wireHeaders(request), reset: true },
        {
          onRequestStart: () => undefined,
          onResponseStart: (_controller, statusCode, headers) =>
            partial.begin(statusCode, [headers['location']].flat()[0]),
          onResponseData: (_controller, chunk) => {
            if (partial.add(chunk)) settle(partial.answer)
          },
          onResponseEnd: () => {
            isWhole = true
            settle(partial.answer)
          },
          onResponseError: (_controller, error) => {
            const isMalformed = isRefusedByUndici(error, partial.status > 0)
            if (partial.status > 0)
              settle(httpFailure(describeReadError(error, host, port), 'body', { isMalformed }))
            else settle({ ...unanswered(request, error, taken.connection.isConnected()), isMalformed })
          },
        },
      )
    } catch (error) {
      // Headers that undici refuses to send: invalid names or values.
      settle(httpFailure(asking(request) + errorMessage(error), 'answer'))
    }
    return () => {
      if (!isWhole || keeper === undefined) return letGoOf(taken)
      // undici would close it now, for an error of whose stack Node makes a text.
      taken.connection.destroy()
      keptClients.set(keeper, taken)
    }
  })
}

/**
 * Nobody sees it. Without an error of the caller's, undici makes one with a stack for each connection: a tenth of a
 * probe's CPU.
 */
const letGo = new Error('the attempt has its result')

const tlsMismatchCodes: ReadonlySet<string> = new Set([
  'ERR_SSL_WRONG_VERSION_NUMBER',
  'ERR_SSL_PACKET_LENGTH_TOO_LONG',
])

function unanswered(request: HttpRequest, error: unknown, wasConnected: boolean): HttpFailure {
  const where = asking(request)
  if (tlsMismatchCodes.has(errorCode(error) ?? '')) {
    const message = `${where}http: server gave HTTP response to HTTPS client`
    return httpFailure(message, 'answer', { tlsMismatch: true })
  }
  const describe = wasConnected ? describeReadError : describeDialError
  return httpFailure(
    where + describe(error, request.host, request.port),
    isOwnFault(error) ? 'own' : 'answer',
  )
}

function outOfTime(request: HttpRequest, inBody: boolean): HttpFailure {
  const message = inBody
    ? 'context deadline exceeded (Client.Timeout or context cancellation while reading body)'
    : `${asking(request)}context deadline exceeded (Client.Timeout exceeded while awaiting headers)`
  return httpFailure(message, inBody ? 'body' : 'answer', { timedOut: true })
}

/** Host names the port even where it is the scheme's own, as Go does for a URL that names it. */
function wireHeaders(request: HttpRequest): string[] {
  const hostHeader = request.hostHeader ?? joinHostPort(request.host, request.port)
  return ['Host', hostHeader, ...request.headers.flat()]
}

interface Endpoint {
  readonly scheme: 'http' | 'https'
  readonly host: string
  readonly port: number
}

/** A connector for one undici client, and the way to end what it opened, also while it is still connecting. */
export interface HttpConnection {
  readonly connector: buildConnector.connector
  readonly destroy: () => void
  /** Whether a connection stood when things went wrong. */
  readonly isConnected: () => boolean
}

/**
 * Connects as the kubelet's probes do: directly (no proxy), nothing of the server's certificate
 * verified, no client certificate, and a host name sent by SNI only where there is one.
 */
function createHttpConnection(endpoint: Endpoint): HttpConnection {
  let socket: Socket | undefined
  let connected = false
  const connector: buildConnector.connector = (_options, callback) => {
    connected = false
    const opening = openSocket(endpoint)
    socket = opening
    const onError = (error: Error): void => callback(error, null)
    opening.once('error', onError)
    opening.once(endpoint.scheme === 'https' ? 'secureConnect' : 'connect', () => {
      connected = true
      opening.removeListener('error', onError)
      callback(null, opening)
    })
  }
  const destroy = (): void => {
    // A socket may still fail while it closes; its errors no longer matter.
    socket?.on('error', () => undefined)
    socket?.destroy()
  }
  return { connector, destroy, isConnected: () => connected }
}

function openSocket({ scheme, host, port }: Endpoint, protocols = ['h2', 'http/1.1']): Socket {
  if (scheme === 'http') return connectTcp({ host, port, lookup: lookUpHost })
  return connectTls({
    host,
    port,
    lookup: lookUpHost,
    rejectUnauthorized: false,
    // Nothing is verified, so old and short keys do no further harm.
    ciphers: 'DEFAULT@SECLEVEL=0',
    ALPNProtocols: protocols,
    ...(isIP(host) === 0 ? { servername: host } : {}),
  })
}
