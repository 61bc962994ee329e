/**
 * One unary gRPC call on a plaintext connection of its own, over node:http2. grpc-js isn't used here: a
 * client of its that is closed while the server owes it the first settings frame leaves its connection
 * open, so that each probe of a hanging server would cost a socket.
 */
import { connect as connectHttp2, constants } from 'node:http2'
import type { ClientHttp2Session, IncomingHttpHeaders } from 'node:http2'
import { connect as connectTcp } from 'node:net'
import type { Clock, Timer } from '../base/clock.ts'
import { errorMessage } from '../base/errors.ts'
import { nodeHttp } from '../base/node-http.ts'
import { describeReadError, joinHostPort } from './go-words.ts'

export interface UnaryRequest {
  readonly host: string
  readonly port: number
  /** `/package.Service/Method` */
  readonly path: string
  readonly message: Uint8Array
  readonly userAgent: string
  /** Told to the server; keeping to it is the caller's part. */
  readonly timeoutMs: number
  readonly clock: Clock
}

export type UnaryReply =
  | { readonly kind: 'message'; readonly message: Buffer }
  | { readonly kind: 'error'; readonly code: GrpcCode; readonly details: string }

export interface RunningCall {
  /** Whether the server has greeted. */
  readonly isConnected: () => boolean
  /** Releases everything; nothing is reported afterwards. */
  readonly cancel: () => void
}

/** The codes of gRPC by number, as Go prints them. */
const codes = [
  'OK',
  'Canceled',
  'Unknown',
  'InvalidArgument',
  'DeadlineExceeded',
  'NotFound',
  'AlreadyExists',
  'PermissionDenied',
  'ResourceExhausted',
  'FailedPrecondition',
  'Aborted',
  'OutOfRange',
  'Unimplemented',
  'Internal',
  'Unavailable',
  'DataLoss',
  'Unauthenticated',
] as const

export type GrpcCode = (typeof codes)[number]

/** The gRPC code of a plain HTTP status. */
const httpCodes: Readonly<Record<number, GrpcCode>> = {
  400: 'Internal',
  401: 'Unauthenticated',
  403: 'PermissionDenied',
  404: 'Unimplemented',
  429: 'Unavailable',
  502: 'Unavailable',
  503: 'Unavailable',
  504: 'Unavailable',
}

/** The pause after the first failed attempt to connect, and by how much each next one is longer (gRPC's connection backoff). */
const firstBackoffMs = 1_000
const backoffFactor = 1.6
/** Far longer than a health reply; the rest of a longer one isn't read. */
const maxReplyBytes = 64 * 1024

/** Connects (again and again, with a growing pause) until it is answered or cancelled. */
export function startUnaryCall(request: UnaryRequest, onReply: (reply: UnaryReply) => void): RunningCall {
  let current: ClientHttp2Session | undefined
  let retry: Timer | undefined
  let connected = false
  let backoffMs = firstBackoffMs
  const letGo = (): void => {
    const session = current
    current = undefined
    retry?.cancel()
    session?.destroy()
  }
  const finish = (reply: UnaryReply): void => {
    if (current === undefined) return
    letGo()
    onReply(reply)
  }
  const dial = (): void => {
    const session = openSession(request)
    current = session
    const onLost = (error?: Error): void => {
      if (current !== session) return
      if (connected) return finish(lostConnection(request, error))
      letGo()
      retry = request.clock.startTimer(backoffMs, dial)
      backoffMs *= backoffFactor
    }
    session.on('error', onLost)
    session.on('close', () => onLost())
    session.once('remoteSettings', () => {
      connected = true
      sendRequest(session, request, finish)
    })
  }
  dial()
  return { isConnected: () => connected, cancel: letGo }
}

function openSession({ host, port }: UnaryRequest): ClientHttp2Session {
  const socket = connectTcp({ host, port, noDelay: true })
  const session = connectHttp2(`http://${joinHostPort(host, port)}`, {
    createConnection: () => socket,
    settings: { enablePush: false },
  })
  session.on('close', () => socket.destroy())
  return session
}

function lostConnection({ host, port }: UnaryRequest, error: Error | undefined): UnaryReply {
  const why = error === undefined ? 'EOF' : describeReadError(error, host, port)
  return { kind: 'error', code: 'Unavailable', details: `error reading from server: ${why}` }
}

function sendRequest(
  session: ClientHttp2Session,
  request: UnaryRequest,
  finish: (reply: UnaryReply) => void,
): void {
  const chunks: Buffer[] = []
  let sizeBytes = 0
  let head: IncomingHttpHeaders = {}
  let trailers: IncomingHttpHeaders = {}
  const stream = session.request({
    ':method': 'POST',
    ':path': request.path,
    'content-type': 'application/grpc',
    te: 'trailers',
    'user-agent': request.userAgent,
    // At most eight digits.
    'grpc-timeout': `${Math.min(request.timeoutMs, 99_999_999)}m`,
  })
  stream.on('response', (headers) => (head = headers))
  stream.on('trailers', (headers) => (trailers = headers))
  stream.on('data', (chunk: Buffer) => {
    sizeBytes += chunk.length
    if (sizeBytes <= maxReplyBytes) chunks.push(chunk)
  })
  stream.on('error', () => undefined)
  stream.on('close', () => {
    const hasStatus = (trailers['grpc-status'] ?? head['grpc-status']) !== undefined
    // A connection that is lost takes its streams with it.
    if (!hasStatus && (session.closed || session.destroyed)) finish(lostConnection(request, undefined))
    else finish(readReply(head, trailers, Buffer.concat(chunks), stream.rstCode))
  })
  stream.end(frame(request.message))
}

/** Not compressed, then the length, then the message. */
function frame(message: Uint8Array): Buffer {
  const framed = Buffer.alloc(5 + message.length)
  framed.writeUInt32BE(message.length, 1)
  framed.set(message, 5)
  return framed
}

function readReply(
  head: IncomingHttpHeaders,
  trailers: IncomingHttpHeaders,
  body: Buffer,
  resetCode: number,
): UnaryReply {
  const fail = (code: GrpcCode, details: string): UnaryReply => ({ kind: 'error', code, details })
  const status = trailers['grpc-status'] ?? head['grpc-status']
  if (status === undefined) {
    if (head[':status'] === undefined || resetCode !== constants.NGHTTP2_NO_ERROR) {
      const name = resetCode === constants.NGHTTP2_CANCEL ? 'Canceled' : 'Unavailable'
      return fail(name, `stream terminated by RST_STREAM with error code: ${resetCode}`)
    }
    return notGrpc(head)
  }
  const code = codes[Number(status)] ?? 'Unknown'
  if (code !== 'OK') return fail(code, decodeMessage(trailers['grpc-message'] ?? head['grpc-message']))
  const isWhole = body.length >= 5 && body[0] === 0 && body.length === 5 + body.readUInt32BE(1)
  if (!isWhole) return fail('Internal', 'the reply holds no message')
  return { kind: 'message', message: body.subarray(5) }
}

function notGrpc(head: IncomingHttpHeaders): UnaryReply {
  const status = Number(head[':status'])
  const type = head['content-type'] ?? ''
  const details =
    `unexpected HTTP status code received from server: ${status} (${nodeHttp.STATUS_CODES[status] ?? ''}); ` +
    `transport: received unexpected content-type "${type}"`
  return { kind: 'error', code: httpCodes[status] ?? 'Unknown', details }
}

/** gRPC percent-encodes what isn't plain ASCII. */
function decodeMessage(value: string | string[] | undefined): string {
  const text = [value].flat().join(', ')
  try {
    return decodeURIComponent(text)
  } catch (error) {
    return `${text} (${errorMessage(error)})`
  }
}
