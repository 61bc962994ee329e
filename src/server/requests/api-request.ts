import type { IncomingHttpHeaders } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Identity } from './identity.ts'

/** A request as a listener hands it over, whatever it came by. */
export interface ApiRequest {
  readonly method: string
  /** Path and query. */
  readonly target: string
  readonly headers: IncomingHttpHeaders
  readonly identity: Identity
  /**
   * What the client sent along, whole; may be asked for once. Rejects with ApiError RequestEntityTooLarge, or with the
   * connection's error. What is not asked for is dropped.
   */
  readBody(): Promise<Buffer>
  /** Aborted when the client has gone away, or the server closes. */
  readonly signal: AbortSignal
}

export interface ApiResponse {
  readonly status: number
  readonly contentType: string
  /** Beside the type and the length. */
  readonly headers?: Readonly<Record<string, string | string[]>>
  /**
   * Complete, or in pieces, of which the next one is taken when the client has room for it. What fails before the first
   * piece can still be told with a Status; after it, the connection is cut.
   */
  readonly body: string | Iterable<Uint8Array> | AsyncIterable<Uint8Array>
  /** The first piece may be a long time coming: the head is sent before it. */
  readonly headFirst?: boolean
  /** The client may leave pieces unread for ever. */
  readonly mayWait?: boolean
  /** Aborted when the client is to be cut off, whatever it has still to take. */
  readonly cutOff?: AbortSignal
}

/** A connection that is to speak another protocol from now on. */
export interface OpenedStream {
  /** Of the answer `101 Switching Protocols`; undefined where the stream answers by itself. */
  readonly headers: Readonly<Record<string, string>> | undefined
  /** Serves the connection until it is done; never rejects. */
  serve(): Promise<void>
}

/** The API without sockets. */
export interface ApiHandler {
  /** Never rejects: what goes wrong is answered with a Status. */
  handle(request: ApiRequest): Promise<ApiResponse>
  /** Whether `open` serves what the request asks to be upgraded to; any other wish may be passed over. */
  upgrades(headers: IncomingHttpHeaders): boolean
  /**
   * Does what the request asks for, up to the moment from which on the connection belongs to the stream. Never rejects.
   */
  open(request: ApiRequest, connection: Duplex): Promise<ApiResponse | OpenedStream>
}

export function jsonResponse(body: unknown, status = 200): ApiResponse & { readonly body: string } {
  return { status, contentType: 'application/json', body: `${JSON.stringify(body)}\n` }
}
