import { connect as connectHttp2 } from 'node:http2'
import { connect as connectTcp, isIP } from 'node:net'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { connect as connectTls, TLSSocket } from 'node:tls'
import { errorCode, errorMessage } from '../base/errors.ts'
import { nodeHttp } from '../base/node-http.ts'
import { boundAttempt } from './bound-attempt.ts'
import type { AttemptBounds } from './bound-attempt.ts'
import { describeDialError, describeReadError, isOwnFault, joinHostPort } from './go-words.ts'
import { requestUrl } from './http-request.ts'
import type { HttpRequest } from './http-request.ts'
import { maxOutputBytes } from './probe-outcome.ts'

/** A response's headers and as much of its body as is wanted. */
export interface HttpAnswer {
  readonly kind: 'response'
  readonly status: number
  readonly location: string | undefined
  readonly body: string
}

export interface HttpFailure {
  readonly kind: 'error'
  /** In Go's words, the URL included where there was no answer. */
  readonly message: string
  /** `answer`: none came. `body`: it broke off after its headers. `own`: this host had no means to ask. */
  readonly during: 'answer' | 'body' | 'own'
  readonly timedOut: boolean
  /** It was asked over TLS and answered without. */
  readonly tlsMismatch: boolean
}

export function httpFailure(
  message: string,
  during: HttpFailure['during'],
  more: { readonly timedOut?: boolean; readonly tlsMismatch?: boolean } = {},
): HttpFailure {
  const { timedOut = false, tlsMismatch = false } = more
  return { kind: 'error', message, during, timedOut, tlsMismatch }
}

const tlsMismatchCodes: ReadonlySet<string> = new Set([
  'ERR_SSL_WRONG_VERSION_NUMBER',
  'ERR_SSL_PACKET_LENGTH_TOO_LONG',
])

/** One request on one connection, without following redirects. Never rejects. */
export function sendHttpRequest(
  request: HttpRequest,
  bounds: AttemptBounds,
): Promise<HttpAnswer | HttpFailure> {
  const { host, port } = request
  const where = `Get "${requestUrl(request)}": `
  let isAnswered = false
  return boundAttempt<HttpAnswer | HttpFailure>(bounds, {
    begin: (settle) => {
      const socket = openSocket(request)
      let isConnected = false
      // Stays on: a socket may still fail while it closes.
      const onError = (error: unknown): void => {
        if (isAnswered) settle(httpFailure(describeReadError(error, host, port), 'body'))
        else settle(unanswered(request, error, isConnected))
      }
      const onResponse: OnResponse = (status, location, body) => {
        isAnswered = true
        const chunks: Buffer[] = []
        let sizeBytes = 0
        const finish = (): void => {
          const text = Buffer.concat(chunks).toString('utf8', 0, Math.min(sizeBytes, maxOutputBytes))
          settle({ kind: 'response', status, location, body: text })
        }
        body.on('data', (chunk: Buffer) => {
          chunks.push(chunk)
          sizeBytes += chunk.length
          if (sizeBytes >= maxOutputBytes) finish()
        })
        body.once('end', finish)
      }
      socket.on('error', onError)
      socket.once(request.scheme === 'https' ? 'secureConnect' : 'connect', () => {
        isConnected = true
        try {
          if (socket instanceof TLSSocket && socket.alpnProtocol === 'h2')
            sendHttp2(socket, request, onResponse, onError)
          else sendHttp1(socket, request, onResponse, onError)
        } catch (error) {
          // Headers that cannot be sent: invalid names or values.
          settle(httpFailure(where + errorMessage(error), 'answer'))
        }
      })
      return () => socket.destroy()
    },
    onTimeout: () => outOfTime(where, isAnswered),
    onAbort: () => httpFailure(`${where}context canceled`, 'own'),
  })
}

type OnResponse = (status: number, location: string | undefined, body: Readable) => void
type OnError = (error: unknown) => void

function sendHttp1(socket: Socket, request: HttpRequest, onResponse: OnResponse, onError: OnError): void {
  const sent = nodeHttp.request({
    createConnection: () => socket,
    path: request.path,
    headers: wireHeaders(request),
    setHost: false,
  })
  sent.on('error', onError)
  sent.once('response', (got) => {
    got.on('error', onError)
    onResponse(got.statusCode ?? 0, got.headers.location, got)
  })
  sent.end()
}

/** Headers that HTTP/2 has no place for are left out, as Go's client does. */
function sendHttp2(socket: Socket, request: HttpRequest, onResponse: OnResponse, onError: OnError): void {
  const authority = request.hostHeader ?? joinHostPort(request.host, request.port)
  const session = connectHttp2('https://probed.invalid', { createConnection: () => socket })
  session.on('error', onError)
  const headers: Record<string, string[]> = {}
  for (const [name, value] of request.headers) {
    const key = name.toLowerCase()
    if (!connectionHeaders.has(key)) (headers[key] ??= []).push(value)
  }
  const stream = session.request({ ...headers, ':authority': authority, ':path': request.path })
  stream.on('error', onError)
  // Where the connection ends without a word.
  stream.once('close', () => onError(new Error('unexpected EOF')))
  stream.once('response', (got) => onResponse(got[':status'] ?? 0, got['location'], stream))
}

const connectionHeaders: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'upgrade',
  'te',
])

/**
 * Connects as the kubelet's probes do: directly (no proxy), nothing of the server's certificate
 * verified, no client certificate, and a host name sent by SNI only where there is one.
 */
function openSocket({ scheme, host, port }: HttpRequest): Socket {
  if (scheme === 'http') return connectTcp({ host, port })
  return connectTls({
    host,
    port,
    rejectUnauthorized: false,
    // Nothing is verified, so old and short keys do no further harm.
    ciphers: 'DEFAULT@SECLEVEL=0',
    ALPNProtocols: ['h2', 'http/1.1'],
    ...(isIP(host) === 0 ? { servername: host } : {}),
  })
}

function unanswered(request: HttpRequest, error: unknown, wasConnected: boolean): HttpFailure {
  const where = `Get "${requestUrl(request)}": `
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

function outOfTime(where: string, inBody: boolean): HttpFailure {
  const message = inBody
    ? 'context deadline exceeded (Client.Timeout or context cancellation while reading body)'
    : `${where}context deadline exceeded (Client.Timeout exceeded while awaiting headers)`
  return httpFailure(message, inBody ? 'body' : 'answer', { timedOut: true })
}

/** Host names the port even where it is the scheme's own, as Go does for a URL that names it. */
function wireHeaders(request: HttpRequest): string[] {
  const hostHeader = request.hostHeader ?? joinHostPort(request.host, request.port)
  return ['Host', hostHeader, ...request.headers.flat()]
}
