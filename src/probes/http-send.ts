import { errorMessage } from '../base/errors.ts'
import type { Client } from 'undici'
import { boundAttempt } from './bound-attempt.ts'
import type { AttemptBounds } from './bound-attempt.ts'
import { describeReadError } from './go-words.ts'
import { canceled, hostOf, httpFailure, outOfTime, unanswered, whereOf } from './http-answer.ts'
import type { HttpAnswer, HttpFailure } from './http-answer.ts'
import { createHttpConnection } from './http-connect.ts'
import type { HttpRequest } from './http-request.ts'
import { maxOutputBytes } from './probe-outcome.ts'

/** One request on one connection, without following redirects. Never rejects. */
export function sendHttpRequest(
  ClientClass: typeof Client,
  request: HttpRequest,
  bounds: AttemptBounds,
): Promise<HttpAnswer | HttpFailure> {
  const { scheme, host, port } = request
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
        // What undici refuses to send: a header name or value that HTTP doesn't have.
        settle(httpFailure(whereOf(request) + errorMessage(error), 'answer'))
      }
      return () => {
        client.destroy().catch(() => undefined)
        connection.destroy()
      }
    },
    onTimeout: () => outOfTime(request, status > 0),
    onAbort: () => canceled(request),
  })
}

function wireHeaders(request: HttpRequest): string[] {
  return ['Host', hostOf(request), ...request.headers.flat()]
}
