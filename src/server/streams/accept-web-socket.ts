import type { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'
import { nodeHttp } from '../../base/node-http.ts'
import { ApiError } from '../requests/api-error.ts'
import type { ApiRequest } from '../requests/api-request.ts'

/** What one message may take: clients send what one read gave, some a whole input at once. */
const mostMessageBytes = 4 * 1024 * 1024

/** Refuses a handshake that can't succeed while it can still be answered with a Status. Throws ApiError. */
export function checkHandshake({ method, headers }: ApiRequest): void {
  if (method !== 'GET') throw new ApiError(400, 'a WebSocket is asked for with GET')
  if (headers['sec-websocket-version'] !== '13') throw new ApiError(400, 'Sec-WebSocket-Version must be 13')
  if (!/^[+/0-9A-Za-z]{22}==$/u.test(headers['sec-websocket-key'] ?? ''))
    throw new ApiError(400, 'Sec-WebSocket-Key must be 16 bytes in base64')
}

/**
 * Answers the handshake and gives the WebSocket that the connection is from then on; the handshake was checked. Its
 * messages wait until they are asked for.
 * @param protocol empty where the client names none
 */
export async function acceptWebSocket(
  request: ApiRequest,
  connection: Duplex,
  protocol: string,
): Promise<WebSocket> {
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
  // The name of SPDY's tunnel has a slash, with which `ws` takes none: it is answered here.
  message.headers = { ...request.headers, 'sec-websocket-protocol': undefined }
  if (protocol !== '') server.on('headers', (lines) => void lines.push(`Sec-WebSocket-Protocol: ${protocol}`))
  return new Promise((resolve, reject) => {
    connection.once('close', () => reject(new Error('the client went away')))
    server.handleUpgrade(message, connection, Buffer.alloc(0), (socket) => {
      // What breaks the protocol or the connection ends it, which its readers see.
      socket.on('error', () => {})
      socket.pause()
      resolve(socket)
    })
  })
}
