import type { IncomingHttpHeaders } from 'node:http'
import type { Duplex } from 'node:stream'
import { toStatusObject } from './api-error.ts'

/** A request as a listener hands it over, independent of the transport. */
export interface ApiRequest {
  readonly method: string
  /** Path and query. */
  readonly target: string
  readonly headers: IncomingHttpHeaders
  readonly identity: Identity
  /** The whole body, once. Rejects with ApiError RequestEntityTooLarge, or the connection's error. */
  readBody(): Promise<Buffer>
  /** Aborted when the client has gone away or is no longer who it was, or the server closes. */
  readonly signal: AbortSignal
}

export interface ApiResponse {
  readonly status: number
  readonly contentType: string
  /** Beside the type and the length. */
  readonly headers?: Readonly<Record<string, string | string[]>>
  /**
   * Complete, or in pieces, of which the next one is taken when the client has room for it. An error before the first
   * piece is answered with a Status; after it, the connection is cut.
   */
  readonly body: string | Iterable<Uint8Array> | AsyncIterable<Uint8Array>
  /** The head is sent at once, as the first piece may take long. */
  readonly headFirst?: boolean
  /** The client may leave pieces unread forever. */
  readonly mayWait?: boolean
  /** Aborted to cut off the client, whatever is still unsent. */
  readonly cutOff?: AbortSignal
}

/** A connection that is upgraded to another protocol. */
export interface OpenedStream {
  /** Of the answer `101 Switching Protocols`; undefined where the stream answers by itself. */
  readonly headers: Readonly<Record<string, string>> | undefined
  /** Serves the connection until it is done; never rejects. */
  serve(): Promise<void>
}

/** The API without sockets. */
export interface ApiHandler {
  /** Never rejects: errors are answered with a Status. */
  handle(request: ApiRequest): Promise<ApiResponse>
  /** Whether `open` serves what the request asks to be upgraded to; other upgrades may be ignored. */
  upgrades(headers: IncomingHttpHeaders): boolean
  /** Carries out the request, until the connection belongs to the stream. Never rejects. */
  open(request: ApiRequest, connection: Duplex): Promise<ApiResponse | OpenedStream>
}

export function jsonResponse(body: unknown, status = 200): ApiResponse & { readonly body: string } {
  return { status, contentType: 'application/json', body: `${JSON.stringify(body)}\n` }
}

/** The response for an error; clients retry by themselves where it has a Retry-After. */
export function statusResponse(error: unknown): ApiResponse & { readonly body: string } {
  const status = toStatusObject(error)
  const { retryAfterSeconds } = status.details ?? {}
  const response = jsonResponse(status, status.code)
  if (retryAfterSeconds === undefined) return response
  return { ...response, headers: { 'retry-after': String(retryAfterSeconds) } }
}

/** The path of a request for a log: its query may be the words of a command. */
export function withoutQuery(target: string): string {
  return target.replace(/\?.*$/su, '?…')
}

/** The identity of a client, as the listener determined it. */
export interface Identity {
  readonly name: string
  readonly groups: readonly string[]
  /** Known by a token in the request, which a browser doesn't send by itself, as it does a certificate. */
  readonly byToken?: true
}

const masters = 'system:masters'

/** A client on the unix socket, which has mode 0600. */
export const root: Identity = { name: 'root', groups: [masters] }

/** A client with neither a certificate nor a token. */
export const anonymous: Identity = { name: 'system:anonymous', groups: ['system:unauthenticated'] }

/** The group of all identified clients. */
export const authenticatedGroup = 'system:authenticated'

/** Whether this identity may do everything. */
export function mayDoAll({ groups }: Identity): boolean {
  return groups.includes(masters)
}

export function isAnonymous({ groups }: Identity): boolean {
  return !groups.includes(authenticatedGroup) && !groups.includes(masters)
}
