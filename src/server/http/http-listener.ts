import { once } from 'node:events'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Server as HttpsServer } from 'node:https'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { SecureContextOptions, TlsOptions } from 'node:tls'
import { SharedTurns, startDeadline } from '../../base/clock.ts'
import type { Clock } from '../../base/clock.ts'
import { errorCode, errorMessage, PoddError } from '../../base/errors.ts'
import { nodeHttp } from '../../base/http.ts'
import type { Logger } from '../../base/logger.ts'
import { whenAborted } from '../../base/waits.ts'
import { ApiError } from '../requests/api-error.ts'
import { statusResponse, withoutQuery } from '../requests/request.ts'
import type { ApiHandler, ApiRequest, ApiResponse, Identity, OpenedStream } from '../requests/request.ts'

interface HttpListenerOptions {
  readonly handler: ApiHandler
  /** Identifies the client of a request; may throw ApiError. */
  readonly identify: (request: IncomingMessage) => Identity
  /**
   * Whether the client of a request is still who it was: asked again and again while the request lasts, and the
   * connection is cut when it isn't. Left out, it is for ever.
   */
  readonly isStill?: (request: IncomingMessage, identity: Identity) => boolean
  /** Left out, connections are plain. */
  readonly tls?: Omit<TlsOptions, 'handshakeTimeout'> & { readonly handshakeMs: number }
  /** The largest head of a request, in bytes: it has the words of a command in its path. */
  readonly maxHeaderBytes: number
  /** How long a request may take to arrive with its body; by default 30 s. */
  readonly requestMs?: number
  readonly clock: Clock
  readonly logger: Logger
}

export interface HttpListener {
  /** The server; the caller has it listen. */
  readonly server: Server | HttpsServer
  /** Replaces the certificate of a TLS server. */
  setSecureContext(context: SecureContextOptions): void
  /** Accepts no more requests, ends streams, and waits for requests in flight, `graceMs` at most. */
  close(graceMs: number): Promise<void>
}

/**
 * How long a connection may be idle: longer than clients in Go keep one (90 s, `net/http` DefaultTransport), or they
 * would send a request over a connection that is just being closed, and would not resend most.
 */
const idleMs = 100_000

/** The interval at which the identities of requests that last are checked: watches, logs, commands, forwarded ports. */
const identityPeriodMs = 2000

/** How many bytes of a stream are written before the client has to read. */
const streamBufferBytes = 16 * 1024

export function createHttpListener(options: HttpListenerOptions): HttpListener {
  const { handler, identify, tls, requestMs = 30_000, clock, logger } = options
  const closing = new AbortController()
  const budget = new BodyBudget()
  const http = {
    maxHeaderSize: options.maxHeaderBytes,
    requestTimeout: requestMs,
    keepAliveTimeout: idleMs,
    connectionsCheckingInterval: requestMs,
    highWaterMark: streamBufferBytes,
    shouldUpgradeCallback: ({ headers }: IncomingMessage) => handler.upgrades(headers),
  }
  const onRequest = (request: IncomingMessage, response: ServerResponse): void =>
    void answer(request, response)
  const secure =
    tls === undefined
      ? undefined
      : process
          .getBuiltinModule('node:https')
          .createServer({ ...http, ...tls, handshakeTimeout: tls.handshakeMs }, onRequest)
  const server = secure ?? nodeHttp.createServer(http, onRequest)
  const lasting = new LastingRequests(clock)
  const turns = new SharedTurns(clock)
  /** @param gone aborted when the identity ends; `signal` is that of the request, which follows it */
  const toRequest = (
    message: IncomingMessage,
    body: RequestBody,
    gone: AbortController,
    signal: AbortSignal,
  ): ApiRequest => {
    const { method = '', url = '/', headers } = message
    const identity = identify(message)
    const { isStill } = options
    if (isStill !== undefined) lasting.add(gone, () => isStill(message, identity))
    return { method, target: url, headers, identity, readBody: () => body.read(), signal }
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController()
    response.once('close', () => {
      lasting.delete(gone)
      gone.abort(new PoddError('CLIENT_GONE', 'the client went away'))
    })
    const signal = AbortSignal.any([gone.signal, closing.signal])
    const body = new RequestBody(request, budget)
    const answered = await handle(request, body, gone, signal).finally(() => body.release())
    body.drop()
    const failure = await writeResponse(response, answered, { clock, turns }, signal)
    if (failure !== undefined)
      logger.error({ path: withoutQuery(request.url ?? ''), err: failure }, 'API request failed')
  }

  async function handle(
    request: IncomingMessage,
    body: RequestBody,
    gone: AbortController,
    signal: AbortSignal,
  ): Promise<ApiResponse> {
    try {
      body.refuseLarge()
      return await handler.handle(toRequest(request, body, gone, signal))
    } catch (error) {
      return statusResponse(error)
    }
  }

  /** The streams over upgraded connections, which the HTTP server doesn't track. */
  const upgraded = new Set<Promise<void>>()
  server.on('upgrade', (request, socket, head) => {
    const served = upgrade(request, socket, head).finally(() => upgraded.delete(served))
    upgraded.add(served)
  })

  async function upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    socket.on('error', () => {})
    // While it is open: a closing HTTP server waits for it but can't end it.
    const cut = (): void => void socket.destroy()
    closing.signal.addEventListener('abort', cut, { once: true })
    const gone = new AbortController()
    gone.signal.addEventListener('abort', cut, { once: true })
    socket.once('close', () => {
      closing.signal.removeEventListener('abort', cut)
      lasting.delete(gone)
      gone.abort(new PoddError('CLIENT_GONE', 'the client went away'))
    })
    if (closing.signal.aborted) cut()
    if (head.length > 0) socket.unshift(head)
    const opened = await open(request, socket, gone)
    if ('status' in opened) return refuse(socket, opened, clock)
    if (opened.headers !== undefined) {
      const lines = Object.entries(opened.headers).map(([name, value]) => `${name}: ${value}\r\n`)
      socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n${lines.join('')}\r\n`)
    }
    try {
      await opened.serve()
    } catch (error) {
      logger.error({ path: withoutQuery(request.url ?? ''), err: error }, 'API stream failed')
      socket.destroy()
    }
  }

  async function open(
    request: IncomingMessage,
    socket: Duplex,
    gone: AbortController,
  ): Promise<ApiResponse | OpenedStream> {
    try {
      // Its end cuts the connection, as that of the server does, which ends `gone`.
      const body = new RequestBody(request, budget)
      return await handler.open(toRequest(request, body, gone, gone.signal), socket)
    } catch (error) {
      return statusResponse(error)
    }
  }

  /** All connections, also those in a handshake, which the HTTP server doesn't track. */
  const connections = new Set<Socket>()
  secure?.on('connection', (socket: Socket) => {
    connections.add(socket)
    socket.once('close', () => connections.delete(socket))
  })

  server.on('clientError', (error, socket) => {
    if (socket.writable) refuse(socket, statusResponse(toRequestError(error)), clock)
  })
  // During the handshake no response can be sent: it would wait for the handshake, and the connection with it.
  server.prependListener('tlsClientError', (_error: unknown, socket: Duplex) => socket.destroy())

  return {
    server,
    setSecureContext: (context) => secure?.setSecureContext(context),
    close(graceMs) {
      closing.abort(new PoddError('CLOSING', 'podd is stopping'))
      return closeServer(server, clock, graceMs, upgraded, connections)
    },
  }
}

/**
 * The requests whose client may cease to be who it was. One timer for all of them, and none while there are none: it
 * sees a clock that jumps, and a token file that was replaced in a way that no watch of a file sees, such as by a mount.
 */
class LastingRequests {
  readonly #clock: Clock
  readonly #requests = new Map<AbortController, () => boolean>()
  #isTimed = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** @param end aborted once `isStill` returns false */
  add(end: AbortController, isStill: () => boolean): void {
    this.#requests.set(end, isStill)
    this.#startTimer()
  }

  delete(end: AbortController): void {
    this.#requests.delete(end)
  }

  #startTimer(): void {
    if (this.#isTimed || this.#requests.size === 0) return
    this.#isTimed = true
    this.#clock.startTimer(identityPeriodMs, () => this.#check())
  }

  #check(): void {
    this.#isTimed = false
    for (const [end, isStill] of this.#requests) {
      if (isStill()) continue
      this.#requests.delete(end)
      end.abort(new ApiError(401, 'Unauthorized'))
    }
    this.#startTimer()
  }
}

/** The response to a malformed request, by Node's error code. */
function toRequestError(error: unknown): ApiError {
  switch (errorCode(error)) {
    case 'HPE_HEADER_OVERFLOW':
      return new ApiError(431, `the head of the request is too large`)
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new ApiError(408, 'the request did not arrive in time')
    default:
      return new ApiError(400, `the request is not well-formed: ${errorMessage(error)}`)
  }
}

/** How long a rejected client may take to read the response and close. */
const lingerMs = 5000

/** Answers over a connection without a response object, and closes it. */
function refuse(socket: Duplex, { status, contentType, body }: ApiResponse, clock: Clock): void {
  const text = typeof body === 'string' ? body : ''
  const line = `HTTP/1.1 ${status} ${nodeHttp.STATUS_CODES[status] ?? 'Error'}`
  const safe = Object.entries(safeHeaders).map(([name, value]) => `${name}: ${value}`)
  const headers = [`Content-Type: ${contentType}`, `Content-Length: ${Buffer.byteLength(text)}`, ...safe]
  socket.end(`${[line, ...headers, 'Connection: close'].join('\r\n')}\r\n\r\n${text}`)
  // A client that is blocked sending might never read.
  socket.resume()
  const timer = clock.startTimer(lingerMs, () => socket.destroy())
  socket.once('close', () => timer.cancel())
}

async function closeServer(
  server: Server | HttpsServer,
  clock: Clock,
  graceMs: number,
  upgraded: ReadonlySet<Promise<void>>,
  connections: ReadonlySet<Socket>,
): Promise<void> {
  const ended = new Promise<void>((resolve) => {
    server.close(() => resolve())
  })
  server.closeIdleConnections()
  using patience = startDeadline(clock, graceMs)
  patience.signal.addEventListener('abort', () => {
    server.closeAllConnections()
    for (const connection of connections) connection.destroy()
  })
  await ended
  // The server doesn't count connections from before it listened.
  const gone = [...connections].map(
    (connection) => new Promise((resolve) => connection.once('close', resolve)),
  )
  await Promise.race([Promise.all([...upgraded, ...gone]), whenAborted(patience.signal)])
}

/** The same limit as an API server's (`apiserver/pkg/server/config.go`, MaxRequestBodyBytes, 1.36). */
const maxBodyBytes = 3 * 1024 * 1024

/** The body of a request. Nothing is read from the connection before the handler asks for it. */
class RequestBody {
  readonly #request: IncomingMessage
  readonly #budget: BodyBudget
  #isTaken = false
  #heldBytes = 0

  constructor(request: IncomingMessage, budget: BodyBudget) {
    this.#request = request
    this.#budget = budget
  }

  /** Throws ApiError RequestEntityTooLarge where its Content-Length is too large. */
  refuseLarge(): void {
    if (Number(this.#request.headers['content-length'] ?? 0) > maxBodyBytes) throw tooLarge()
  }

  /** The whole body, once. Rejects with ApiError (too large, too many), or the connection's error. */
  async read(): Promise<Buffer> {
    this.#isTaken = true
    const chunks: Buffer[] = []
    let receivedBytes = 0
    for await (const chunk of this.#request) {
      if (!Buffer.isBuffer(chunk)) continue
      receivedBytes += chunk.length
      if (receivedBytes > maxBodyBytes) throw tooLarge()
      this.#budget.take(chunk.length)
      this.#heldBytes += chunk.length
      chunks.push(chunk)
    }
    return Buffer.concat(chunks)
  }

  release(): void {
    this.#budget.give(this.#heldBytes)
    this.#heldBytes = 0
  }

  /** Drops an unread body, so that the client reads the response; cuts off one that sends too much. */
  drop(): void {
    if (this.#isTaken || this.#request.destroyed) return
    let droppedBytes = 0
    this.#request.on('data', (chunk: Buffer) => {
      droppedBytes += chunk.length
      if (droppedBytes > maxBodyBytes) this.#request.destroy()
    })
  }
}

function tooLarge(): ApiError {
  return new ApiError(413, `the request body is larger than ${maxBodyBytes} bytes`)
}

/** The most bytes that the bodies of all requests of one listener may hold in memory at a time. */
const maxBytes = 64 * 1024 * 1024

export class BodyBudget {
  #heldBytes = 0

  get heldBytes(): number {
    return this.#heldBytes
  }

  /** Throws ApiError TooManyRequests where there is no room. */
  take(bytes: number): void {
    if (this.#heldBytes + bytes > maxBytes)
      throw new ApiError(429, 'too many large requests at a time: try again', undefined, {
        retryAfterSeconds: 1,
      })
    this.#heldBytes += bytes
  }

  give(bytes: number): void {
    this.#heldBytes -= bytes
  }
}

/** After this a client that leaves its response unread is cut off; logs and upgraded connections may wait forever. */
const unreadMs = 60_000

/**
 * What a browser may make of a response that doesn't say otherwise, as the status page's own files do. Much of what podd
 * answers was written by containers (pages of servers in pods, logs, messages), and whatever runs with podd's origin
 * may do what its user may: so it is shown without scripts, forms, plugins, an origin, or anything from elsewhere.
 */
const safeHeaders: Readonly<Record<string, string>> = {
  'content-security-policy':
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

/**
 * Sends a response as the client reads it: the next piece is taken only when there is room for it. When the signal is
 * aborted the connection is cut, so that the client doesn't mistake it for the end of the response. Resolves once
 * everything is handed to the connection, or the connection is gone. Returns the error to log: a defect, or one that
 * came after the response had begun.
 */
async function writeResponse(
  response: ServerResponse,
  answer: ApiResponse,
  { clock, turns }: { readonly clock: Clock; readonly turns: SharedTurns },
  signal: AbortSignal,
): Promise<unknown> {
  const cut = (): void => void response.destroy()
  if (signal.aborted) {
    cut()
    return undefined
  }
  answer.cutOff?.addEventListener('abort', cut, { once: true })
  try {
    if (typeof answer.body === 'string') writeWhole(response, answer, answer.body)
    else await writePieces(response, answer, answer.body, { clock, turns }, signal)
    return undefined
  } catch (error) {
    if (signal.aborted || response.headersSent) {
      response.destroy()
      return signal.aborted || answer.cutOff?.aborted === true ? undefined : error
    }
    const told = statusResponse(error)
    writeWhole(response, told, told.body)
    return error instanceof PoddError ? undefined : error
  } finally {
    cutWhereUnread(response, clock)
  }
}

function writeWhole(
  response: ServerResponse,
  { status, contentType, headers }: ApiResponse,
  text: string,
): void {
  response.writeHead(status, {
    ...safeHeaders,
    ...headers,
    'content-type': contentType,
    'content-length': Buffer.byteLength(text),
  })
  response.end(text)
}

async function writePieces(
  response: ServerResponse,
  { status, contentType, headers, headFirst, mayWait }: ApiResponse,
  pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  { clock, turns }: { readonly clock: Clock; readonly turns: SharedTurns },
  signal: AbortSignal,
): Promise<void> {
  const sendHead = (): void => {
    if (!response.headersSent)
      response.writeHead(status, { ...safeHeaders, ...headers, 'content-type': contentType })
  }
  if (headFirst === true) {
    sendHead()
    response.flushHeaders()
  }
  for await (const piece of pieces) {
    if (signal.aborted) break
    sendHead()
    if (response.write(piece)) continue
    await drained(response, signal, mayWait === true ? undefined : clock)
    // Where the socket takes whatever comes, many long answers would be one turn.
    const turn = turns.enter()
    if (turn !== undefined) await turn
  }
  if (signal.aborted) {
    response.destroy()
    return
  }
  sendHead()
  response.end()
}

/** With a clock, waits no longer than a client may leave its response unread. */
async function drained(
  response: ServerResponse,
  signal: AbortSignal,
  clock: Clock | undefined,
): Promise<void> {
  const timer = clock?.startTimer(unreadMs, () => response.destroy())
  try {
    await once(response, 'drain', { signal })
  } finally {
    timer?.cancel()
  }
}

/** A complete response waits in memory until its client reads it. */
function cutWhereUnread(response: ServerResponse, clock: Clock): void {
  if (response.writableFinished || response.destroyed) return
  const timer = clock.startTimer(unreadMs, () => response.destroy())
  response.once('close', () => timer.cancel())
}
