import type { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'
import { chooseProtocol } from '../../api/remote-command.ts'
import type { ApiRequest, ApiResponse, OpenedStream } from '../requests/api-request.ts'
import { booleanParam } from '../requests/query.ts'
import { acceptWebSocket, checkHandshake } from './accept-web-socket.ts'

/** A protocol that dashboards offer; events are text nevertheless. */
const protocols = ['base64.binary.k8s.io', 'binary.k8s.io'] as const

const closeStatus = 1000

/** Whether a request asks for a watch over a WebSocket, as pages in a browser do. */
export function asksForWatch({ headers: { upgrade } }: ApiRequest, { searchParams }: URL): boolean {
  return upgrade?.toLowerCase() === 'websocket' && booleanParam(searchParams, 'watch')
}

/**
 * Serves a watch over a WebSocket, each event as a message of text (`apiserver/pkg/endpoints/handlers/watch.go`,
 * HandleWS, 1.36). Returns the response where the request is rejected. Throws ApiError.
 */
export async function openWatch(
  request: ApiRequest,
  connection: Duplex,
  answer: (request: ApiRequest) => Promise<ApiResponse>,
): Promise<ApiResponse | OpenedStream> {
  checkHandshake(request)
  const protocol = chooseProtocol(request.headers['sec-websocket-protocol'], protocols) ?? ''
  const gone = new AbortController()
  connection.once('close', () => gone.abort())
  const signal = AbortSignal.any([request.signal, gone.signal])
  const { body, ...answered } = await answer({ ...request, signal })
  if (typeof body === 'string') return { ...answered, body }
  return {
    headers: undefined,
    async serve() {
      answered.cutOff?.addEventListener('abort', () => connection.destroy(), { once: true })
      const socket = await acceptWebSocket(request, connection, protocol)
      if (socket === undefined) return
      // The client's messages are ignored; only its close counts.
      socket.resume()
      await sendAll(socket, body)
    },
  }
}

async function sendAll(
  socket: WebSocket,
  pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
): Promise<void> {
  try {
    for await (const piece of pieces) {
      if (socket.readyState !== socket.OPEN) break
      await sendText(socket, piece)
    }
    socket.close(closeStatus)
  } catch {
    // A stream that has begun can only be cut off.
    socket.terminate()
  }
}

/** Resolves when the message was sent, or the connection is closed. */
function sendText(socket: WebSocket, piece: Uint8Array): Promise<void> {
  return new Promise((resolve) => {
    socket.send(piece, { binary: false }, () => resolve())
  })
}
