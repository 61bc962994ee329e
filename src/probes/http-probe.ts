/*
 * HTTP as the kubelet's probes and lifecycle hooks send it: one GET over a fresh connection, no keep-alive, no proxy, no
 * certificate check, at most 10 redirects and 10 KiB of body (kubelet pkg/probe/http/http.go, 1.36).
 */
import { connect as connectTcp, isIP } from 'node:net'
import type { Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { errorCode, errorMessage } from '../base/errors.ts'
import { lenientParsing, nodeHttp } from '../base/http.ts'
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
  const got = await sendHttpGet(built.request, bounds)
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
}

function httpFailure(
  message: string,
  during: HttpFailure['during'],
  { timedOut = false, tlsMismatch = false }: Partial<Pick<HttpFailure, 'timedOut' | 'tlsMismatch'>> = {},
): HttpFailure {
  return { kind: 'error', message, during, timedOut, tlsMismatch }
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
 */
async function sendHttpGet(request: HttpRequest, bounds: AttemptBounds): Promise<HttpAnswer | HttpFailure> {
  const { clock, timeoutMs, signal } = bounds
  const untilMs = timeoutMs === undefined ? undefined : clock.monotonicMs() + timeoutMs
  let current = request
  for (let redirects = 0; ; redirects += 1) {
    const leftMs = untilMs === undefined ? undefined : Math.max(0, untilMs - clock.monotonicMs())
    const answer = await sendOnce(current, { clock, timeoutMs: leftMs, signal })
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

/** How Go's client begins what it says of a request without an answer. */
function asking(request: HttpRequest): string {
  return `Get "${requestUrl(request)}": `
}

/** One request on a connection of its own, without following redirects. Never rejects. */
function sendOnce(request: HttpRequest, bounds: AttemptBounds): Promise<HttpAnswer | HttpFailure> {
  const { host, port } = request
  const partial = new PartialAnswer()
  return boundAttempt<HttpAnswer | HttpFailure>(bounds, {
    begin: (settle) => {
      const { socket, whenConnected } = openSocket(request)
      let isConnected = false
      let sent: Sent | undefined
      // Stays on: a socket may still fail while it closes.
      const onError = (error: Error): void => {
        if (partial.status > 0) settle(httpFailure(describeReadError(error, host, port), 'body'))
        else settle(unanswered(request, error, isConnected))
      }
      socket.on('error', onError)
      socket.once(whenConnected, () => {
        isConnected = true
        const send = 'alpnProtocol' in socket && socket.alpnProtocol === 'h2' ? sendOverHttp2 : sendOverHttp1
        try {
          sent = send(request, socket, partial, { onEnd: () => settle(partial.answer), onError })
        } catch (error) {
          // Headers that Node refuses to send: invalid names or values.
          settle(httpFailure(asking(request) + errorMessage(error), 'answer'))
        }
      })
      return () => {
        sent?.destroy()
        // After an upgrade it is nobody's.
        socket.destroy()
      }
    },
    onTimeout: () => outOfTime(request, partial.status > 0),
    onAbort: () => httpFailure(`${asking(request)}context canceled`, 'own'),
  })
}

/** A request that was sent. */
interface Sent {
  destroy(): unknown
}

interface AnswerEvents {
  /** All that is wanted of the answer is there. */
  readonly onEnd: () => void
  /** It broke off. */
  readonly onError: (error: Error) => void
}

/** Throws where Node refuses to send the headers. */
function sendOverHttp1(
  request: HttpRequest,
  socket: Socket,
  partial: PartialAnswer,
  { onEnd, onError }: AnswerEvents,
): Sent {
  const sent = nodeHttp.request({
    createConnection: () => socket,
    path: request.path,
    headers: ['Host', hostOf(request), ...request.headers.flat()],
    ...lenientParsing,
  })
  sent.on('error', onError)
  sent.once('response', (response) => {
    partial.begin(response.statusCode ?? 0, response.headers.location)
    response.on('error', onError)
    response.on('data', (chunk: Buffer) => {
      if (partial.add(chunk)) onEnd()
    })
    response.once('end', onEnd)
  })
  sent.once('upgrade', ({ statusCode = 0 }) => {
    partial.begin(statusCode, undefined)
    onEnd()
  })
  sent.end()
  return sent
}

/** About one connection, which HTTP/2 says in another way. */
const connectionHeaders: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'upgrade',
  'te',
])

/** Throws where Node refuses to send the headers. */
function sendOverHttp2(
  request: HttpRequest,
  socket: Socket,
  partial: PartialAnswer,
  { onEnd, onError }: AnswerEvents,
): Sent {
  const { connect } = process.getBuiltinModule('node:http2')
  const session = connect(requestUrl(request), { createConnection: () => socket })
  session.on('error', onError)
  const named = Map.groupBy(request.headers, ([name]) => name.toLowerCase())
  const headers = [...named].flatMap(([name, values]) =>
    connectionHeaders.has(name) ? [] : [[name, values.map(([, value]) => value)] as const],
  )
  const stream = session.request({
    ':path': request.path,
    ':authority': hostOf(request),
    ...Object.fromEntries(headers),
  })
  stream.on('error', onError)
  stream.once('response', ({ ':status': status = 0, location }) => partial.begin(status, location))
  stream.on('data', (chunk: Buffer) => {
    if (partial.add(chunk)) onEnd()
  })
  // It ends also where it is cut off.
  stream.once('close', () => {
    if (partial.status > 0 && stream.rstCode === 0) onEnd()
    else onError(new Error('EOF'))
  })
  return session
}

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

/** The Host header names the port even where it is the scheme's own, as Go does for a URL that names it. */
function hostOf({ hostHeader, host, port }: HttpRequest): string {
  return hostHeader ?? joinHostPort(host, port)
}

/**
 * Connects as the kubelet's probes do: directly (no proxy), nothing of the server's certificate verified, no client
 * certificate, and a host name sent by SNI only where there is one.
 */
function openSocket({ scheme, host, port }: HttpRequest): {
  readonly socket: Socket
  readonly whenConnected: 'connect' | 'secureConnect'
} {
  if (scheme === 'http')
    return { socket: connectTcp({ host, port, lookup: lookUpHost }), whenConnected: 'connect' }
  const socket = connectTls({
    host,
    port,
    lookup: lookUpHost,
    rejectUnauthorized: false,
    // Nothing is verified, so old and short keys do no further harm.
    ciphers: 'DEFAULT@SECLEVEL=0',
    ALPNProtocols: ['h2', 'http/1.1'],
    ...(isIP(host) === 0 ? { servername: host } : {}),
  })
  return { socket, whenConnected: 'secureConnect' }
}
