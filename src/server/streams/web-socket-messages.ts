import { on } from 'node:events'
import type { Duplex } from 'node:stream'
import type { RawData, WebSocket } from 'ws'

/** How many messages wait for their reader before no more are read from the connection. */
const maxWaiting = 4

/**
 * The messages of a WebSocket, text or binary, until it closes; reads no more from the connection while messages wait.
 * Throws the error of a connection that breaks, or of an invalid frame. One reader at a time.
 */
export async function* readMessages(socket: WebSocket): AsyncGenerator<Buffer | string, void> {
  if (socket.readyState >= socket.CLOSING) return
  const messages = on(socket, 'message', { close: ['close'], highWaterMark: maxWaiting, lowWaterMark: 1 })
  socket.resume()
  for await (const [data, isBinary] of messages) {
    const bytes = bytesOf(data)
    yield isBinary === true ? bytes : bytes.toString('utf8')
  }
}

function bytesOf(data: RawData): Buffer {
  if (Array.isArray(data)) return Buffer.concat(data)
  return Buffer.isBuffer(data) ? data : Buffer.from(data)
}

/** Resolves when the connection is closed. */
export function whenClosed(connection: Duplex): Promise<void> {
  return new Promise((resolve) => {
    connection.once('close', () => resolve())
    if (connection.destroyed) resolve()
  })
}

/** The code of a connection that has come to its end (RFC 6455, 7.4.1). */
export const normalClosure = 1000

/** Bytes are sent as a binary message, text as one of text. Resolves when the connection has accepted it, or is closed. */
export function sendMessage(socket: WebSocket, message: Uint8Array | string): Promise<void> {
  return new Promise((resolve) => {
    if (socket.readyState === socket.OPEN)
      socket.send(message, { binary: typeof message !== 'string' }, () => resolve())
    else resolve()
  })
}
