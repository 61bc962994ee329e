import type { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'
import { chooseProtocol } from '../../api/remote-command.ts'
import { nodeHttp } from '../../base/http.ts'
import { ApiError } from '../requests/api-error.ts'
import { booleanParam } from '../requests/route.ts'
import type { ApiRequest, ApiResponse, OpenedStream } from '../requests/request.ts'
import { normalClosure, sendMessage } from './web-socket-messages.ts'

/** The largest message: clients send what one read returned, some a whole input at once. */
const maxMessageBytes = 4 * 1024 * 1024

/** Rejects a handshake that can't succeed, while it can still be answered with a Status. Throws ApiError. */
export function checkHandshake({ method, headers }: ApiRequest): void {
  if (method !== 'GET') throw new ApiError(400, 'a WebSocket is asked for with GET')
  if (headers['sec-websocket-version'] !== '13') throw new ApiError(400, 'Sec-WebSocket-Version must be 13')
  if (!/^[+/0-9A-Za-z]{22}==$/u.test(headers['sec-websocket-key'] ?? ''))
    throw new ApiError(400, 'Sec-WebSocket-Key must be 16 bytes in base64')
}

/**
 * Answers a checked handshake and returns the WebSocket; undefined where the client has gone. Its messages wait until
 * they are read.
 * @param protocol empty where the client names none
 */
export async function acceptWebSocket(
  request: ApiRequest,
  connection: Duplex,
  protocol: string,
): Promise<WebSocket | undefined> {
  const { WebSocketServer } = await import('ws')
  const { Socket } = await import('node:net')
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    maxPayload: maxMessageBytes,
    perMessageDeflate: false,
    skipUTF8Validation: true,
  })
  const message = new nodeHttp.IncomingMessage(new Socket())
  message.method = request.method
  message.url = request.target
  // `ws` accepts no protocol with a slash, as the name of SPDY's tunnel has: it is answered here.
  message.headers = { ...request.headers, 'sec-websocket-protocol': undefined }
  if (protocol !== '') server.on('headers', (lines) => void lines.push(`Sec-WebSocket-Protocol: ${protocol}`))
  return new Promise((resolve) => {
    connection.once('close', () => resolve(undefined))
    server.handleUpgrade(message, connection, Buffer.alloc(0), (socket) => {
      // An error ends the connection, which its readers see.
      socket.on('error', () => {})
      socket.pause()
      resolve(socket)
    })
  })
}

/** A protocol that dashboards offer; events are text nevertheless. */
const protocols = ['base64.binary.k8s.io', 'binary.k8s.io'] as const

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
      await sendMessage(socket, Buffer.from(piece).toString('utf8'))
    }
    socket.close(normalClosure)
  } catch {
    // A stream that has begun can only be cut off.
    socket.terminate()
  }
}
