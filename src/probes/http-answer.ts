import { errorCode } from '../base/errors.ts'
import { describeDialError, describeReadError, isOwnFault, joinHostPort } from './go-words.ts'
import { requestUrl } from './http-request.ts'
import type { HttpRequest } from './http-request.ts'

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

const tlsMismatchCodes: ReadonlySet<string> = new Set([
  'ERR_SSL_WRONG_VERSION_NUMBER',
  'ERR_SSL_PACKET_LENGTH_TOO_LONG',
])

export function httpFailure(
  message: string,
  during: HttpFailure['during'],
  more: { readonly timedOut?: boolean; readonly tlsMismatch?: boolean } = {},
): HttpFailure {
  const { timedOut = false, tlsMismatch = false } = more
  return { kind: 'error', message, during, timedOut, tlsMismatch }
}

/** What the message of a request without an answer begins with. */
export function whereOf(request: HttpRequest): string {
  return `Get "${requestUrl(request)}": `
}

/** Why there was no answer. */
export function unanswered(request: HttpRequest, error: unknown, wasConnected: boolean): HttpFailure {
  const where = whereOf(request)
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

export function outOfTime(request: HttpRequest, inBody: boolean): HttpFailure {
  const message = inBody
    ? 'context deadline exceeded (Client.Timeout or context cancellation while reading body)'
    : `${whereOf(request)}context deadline exceeded (Client.Timeout exceeded while awaiting headers)`
  return httpFailure(message, inBody ? 'body' : 'answer', { timedOut: true })
}

export function canceled(request: HttpRequest): HttpFailure {
  return httpFailure(`${whereOf(request)}context canceled`, 'own')
}

/** Host names the port even where it is the scheme's own, as Go does for a URL that names it. */
export function hostOf({ hostHeader, host, port }: HttpRequest): string {
  return hostHeader ?? joinHostPort(host, port)
}
