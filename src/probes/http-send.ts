import { errorCode, errorMessage } from '../base/errors.ts'
import type { Client } from 'undici'
import { boundAttempt } from './bound-attempt.ts'
import type { AttemptBounds } from './bound-attempt.ts'
import { describeDialError, describeReadError, isOwnFault, joinHostPort } from './go-words.ts'
import { createHttpConnection } from './http-connect.ts'
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

/** Nobody sees it. Without an error of the caller's, undici makes one with a stack for each connection: a tenth of a probe's CPU. */
const letGo = new Error('the attempt has its result')

/** One request on one connection, without following redirects. Never rejects. */
export function sendHttpRequest(
  ClientClass: typeof Client,
  request: HttpRequest,
  bounds: AttemptBounds,
): Promise<HttpAnswer | HttpFailure> {
  const { scheme, host, port } = request
  const where = `Get "${requestUrl(request)}": `
  let status = 0
  let location: string | undefined
  const chunks: Buffer[] = []
  let sizeBytes = 0
  const answer = (): HttpAnswer => {
    const body = Buffer.concat(chunks).toString('utf8', 0, Math.min(sizeBytes, maxOutputBytes))
    return { kind: 'response', status, location, body }
  }
  return boundAttempt<HttpAnswer | HttpFailure>(bounds, {
    begin: (settle) => {
      const connection = createHttpConnection(request)
      // The name is never looked up: the connector knows where to go.
      const client = new ClientClass(`${scheme}://probed.invalid`, {
        connect: connection.connector,
        pipelining: 0,
        headersTimeout: 0,
        bodyTimeout: 0,
      })
      try {
        client.dispatch(
          { method: 'GET', path: request.path, headers: wireHeaders(request), reset: true },
          {
            onRequestStart: () => undefined,
            onResponseStart: (_controller, statusCode, headers) => {
              status = statusCode
              location = [headers['location']].flat()[0]
            },
            onResponseData: (_controller, chunk) => {
              chunks.push(chunk)
              sizeBytes += chunk.length
              if (sizeBytes >= maxOutputBytes) settle(answer())
            },
            onResponseEnd: () => settle(answer()),
            onResponseError: (_controller, error) => {
              if (status > 0) settle(httpFailure(describeReadError(error, host, port), 'body'))
              else settle(unanswered(request, error, connection.isConnected()))
            },
          },
        )
      } catch (error) {
        // Headers that undici refuses to send: invalid names or values.
        settle(httpFailure(where + errorMessage(error), 'answer'))
      }
      return () => {
        // The probe has its result; the connection is destroyed below.
        client.destroy(letGo).catch(() => undefined)
        connection.destroy()
      }
    },
    onTimeout: () => outOfTime(where, status > 0),
    onAbort: () => httpFailure(`${where}context canceled`, 'own'),
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
