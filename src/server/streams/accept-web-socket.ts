import type { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'
import { nodeHttp } from '../../base/http.ts'
import { ApiError } from '../requests/api-error.ts'
import type { ApiRequest } from '../requests/api-request.ts'

/** The largest message: clients send what one read returned, some a whole input at once. */
const mostMessageBytes = 4 * 1024 * 1024

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
    maxPayload: mostMessageBytes,
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
