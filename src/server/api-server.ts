import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Clock } from '../base/clock.ts'
import { PoddError, errorCode, errorMessage } from '../base/errors.ts'
import type { Logger } from '../base/logger.ts'
import { nodeHttp } from '../base/node-http.ts'
import { ApiError } from './api-error.ts'
import { listenOnSocket } from './listen-socket.ts'
import { PodLogs } from './pod-logs.ts'
import type { ApiReaders } from './readers.ts'
import { handleRequest } from './request-handler.ts'
import { respondError } from './respond.ts'
import { isUpgrade, refuse, serveUpgrade } from './upgrade.ts'
import { WatchLines } from './watch-lines.ts'

export interface ApiServerOptions {
  /** Where to listen; its directory must be there. */
  readonly socketPath: string
  readonly podLogsDir: string
  readonly readers: ApiReaders
  readonly clock: Clock
  readonly logger: Logger
}

export interface ApiServer {
  /**
   * Takes no more requests, ends watches and followed logs, waits for what is being answered (`graceMs` at most,
   * 2 s unless said) and removes the socket. Calling it again waits for the same end.
   */
  close(graceMs?: number): Promise<void>
}

/** A command's words may stand in the request's path; those of a long one follow the head. */
const mostHeaderBytes = 512 * 1024

/** A client that leaves its answer unread for so long is cut off; logs, and what runs over an upgraded connection, may wait for ever. */
const unreadMs = 60_000

/** How much of a stream is written before the client has to make room. */
const streamBufferBytes = 16 * 1024

/** No request has a body that podd reads. */
const mostBodyBytes = 64 * 1024

/**
 * Serves the API on a unix socket of mode 0600. Throws PoddError ALREADY_RUNNING where another podd listens, or
 * another error of listen-socket.ts.
 */
export async function startApiServer(options: ApiServerOptions): Promise<ApiServer> {
  const closing = new AbortController()
  const logs = new PodLogs({
    podLogsDir: options.podLogsDir,
    pods: options.readers.pods,
    clock: options.clock,
  })
  const lines = new WatchLines()
  const server = nodeHttp.createServer(
    {
      maxHeaderSize: mostHeaderBytes,
      requestTimeout: 30_000,
      highWaterMark: streamBufferBytes,
      shouldUpgradeCallback: isUpgrade,
    },
    (request, response) => {
      void answer(request, response)
    },
  )

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController()
    response.once('close', () => gone.abort(new PoddError('CLIENT_GONE', 'the client went away')))
    const signal = AbortSignal.any([gone.signal, closing.signal])
    try {
      refuseBody(request)
      await handleRequest(request, response, {
        readers: options.readers,
        logs,
        lines,
        clock: options.clock,
        unreadMs,
        signal,
      })
    } catch (error) {
      if (signal.aborted) {
        response.destroy()
        return
      }
      // Once the answer has begun the log is the only place where the cause can be told.
      if (!(error instanceof PoddError) || response.headersSent) {
        options.logger.error({ path: request.url ?? '', err: error }, 'API request failed')
      }
      respondError(response, error)
    } finally {
      cutWhereUnread(response, options.clock)
    }
  }

  /** What is served over upgraded connections, which the HTTP server knows nothing of. */
  const upgrades = new Set<Promise<void>>()
  server.on('upgrade', (request, socket, head) => {
    const { pods, reach } = options.readers
    const context = { pods, reach, clock: options.clock, signal: closing.signal }
    const served = serveUpgrade(request, socket, head, context).finally(() => upgrades.delete(served))
    upgrades.add(served)
  })

  server.on('clientError', (error, socket) => {
    if (socket.writable) refuse(socket, toRequestError(error))
  })

  const removeSocket = await listenOnSocket(server, options.socketPath)
  let closed: Promise<void> | undefined
  return {
    close(graceMs = 2000) {
      closing.abort(new PoddError('CLOSING', 'podd is stopping'))
      closed ??= closeServer(server, options.clock, { graceMs, upgrades }).then(removeSocket)
      return closed
    },
  }
}

/** What is said of a request that is none, by Node's code. */
function toRequestError(error: unknown): ApiError {
  switch (errorCode(error)) {
    case 'HPE_HEADER_OVERFLOW':
      return new ApiError(431, `the head of the request is larger than ${mostHeaderBytes} bytes`)
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new ApiError(408, 'the request did not come in time')
    default:
      return new ApiError(400, `the request is not well-formed: ${errorMessage(error)}`)
  }
}

/** Reads and drops what a client sends along, so that it gets to read the answer; too much is refused. */
function refuseBody(request: IncomingMessage): void {
  const announced = Number(request.headers['content-length'] ?? 0)
  if (announced > mostBodyBytes)
    throw new ApiError(413, `the request body is larger than ${mostBodyBytes} bytes`)
  let receivedBytes = 0
  request.on('data', (chunk: Buffer) => {
    receivedBytes += chunk.length
    if (receivedBytes > mostBodyBytes) request.destroy()
  })
}

/** An answer that is complete waits in memory until its client takes it. */
function cutWhereUnread(response: ServerResponse, clock: Clock): void {
  if (response.writableFinished || response.destroyed) return
  const timer = clock.startTimer(unreadMs, () => response.destroy())
  response.once('close', () => timer.cancel())
}

async function closeServer(
  server: Server,
  clock: Clock,
  { graceMs, upgrades }: { readonly graceMs: number; readonly upgrades: ReadonlySet<Promise<void>> },
): Promise<void> {
  const ended = new Promise<void>((resolve) => {
    server.close(() => resolve())
  })
  server.closeIdleConnections()
  const patience = new AbortController()
  const timer = clock.startTimer(graceMs, () => {
    server.closeAllConnections()
    patience.abort()
  })
  await ended
  const given = new Promise<void>((resolve) => {
    if (patience.signal.aborted) resolve()
    patience.signal.addEventListener('abort', () => resolve(), { once: true })
  })
  await Promise.race([Promise.all(upgrades), given])
  timer.cancel()
}
