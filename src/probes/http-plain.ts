import { connect } from 'node:net'
import { boundAttempt } from './bound-attempt.ts'
import type { AttemptBounds } from './bound-attempt.ts'
import { describeReadError } from './go-words.ts'
import { canceled, hostOf, httpFailure, outOfTime, unanswered, whereOf } from './http-answer.ts'
import type { HttpAnswer, HttpFailure } from './http-answer.ts'
import type { HttpRequest } from './http-request.ts'
import { HttpResponseReader } from './http-response.ts'

const token = /^[\w!#$%&'*+.^`|~-]+$/u
/** All control characters but the tab. */
const unsendable = /[^\t\P{Cc}]/u

/**
 * One request without TLS on one connection, without following redirects. Never rejects. A connection of its own for each
 * probe is what an HTTP client is costly for: this costs half of undici's.
 */
export function sendPlainHttp(
  request: HttpRequest,
  bounds: AttemptBounds,
): Promise<HttpAnswer | HttpFailure> {
  const head = writeHead(request)
  if (typeof head !== 'string') return Promise.resolve(head)
  const { host, port } = request
  const reader = new HttpResponseReader()
  let isConnected = false
  return boundAttempt<HttpAnswer | HttpFailure>(bounds, {
    begin: (settle) => {
      const socket = connect({ host, port })
      const fail = (words: string): void => {
        settle(reader.hasHead ? httpFailure(words, 'body') : httpFailure(whereOf(request) + words, 'answer'))
      }
      const take = (bytes: Buffer | undefined): void => {
        const progress = bytes === undefined ? reader.end() : reader.push(bytes)
        if (progress.kind === 'done') settle({ kind: 'response', ...progress.response })
        else if (progress.kind === 'invalid') fail(progress.message)
      }
      socket.once('connect', () => {
        isConnected = true
        socket.write(head)
      })
      socket.on('data', take)
      socket.once('end', () => take(undefined))
      // Stays on: a socket may still fail while it closes.
      socket.on('error', (error) => {
        if (reader.hasHead) fail(describeReadError(error, host, port))
        else settle(unanswered(request, error, isConnected))
      })
      return () => socket.destroy()
    },
    onTimeout: () => outOfTime(request, reader.hasHead),
    onAbort: () => canceled(request),
  })
}

/** What is sent; what HTTP doesn't have is refused as Go does it (`net/http/transport.go` roundTrip). */
function writeHead(request: HttpRequest): string | HttpFailure {
  let head = `GET ${request.path} HTTP/1.1\r\nHost: ${hostOf(request)}\r\n`
  const refuse = (what: string): HttpFailure => httpFailure(whereOf(request) + what, 'answer')
  if (unsendable.test(hostOf(request))) return refuse('http: invalid Host header')
  for (const [name, value] of request.headers) {
    if (!token.test(name)) return refuse(`net/http: invalid header field name ${JSON.stringify(name)}`)
    if (unsendable.test(value))
      return refuse(`net/http: invalid header field value for ${JSON.stringify(name)}`)
    if (name.toLowerCase() !== 'connection') head += `${name}: ${value}\r\n`
  }
  return `${head}Connection: close\r\n\r\n`
}
