import type { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'

/** How many messages wait for their reader before no more are read from the connection. */
const maxWaiting = 4

/**
 * The messages of a WebSocket, text or binary, until it closes; reads no more from the connection while messages wait.
 * Throws the error of a connection that breaks, or of an invalid frame. One reader at a time.
 */
export async function* readMessages(socket: WebSocket): AsyncGenerator<Buffer | string, void> {
  const waiting: (Buffer | string)[] = []
  let wake: () => void = () => {}
  let failure: Error | undefined
  let isOver = socket.readyState >= socket.CLOSING
  const onMessage = (data: Buffer | ArrayBuffer | Buffer[], isBinary: boolean): void => {
    const bytes = Array.isArray(data) ? Buffer.concat(data) : Buffer.isBuffer(data) ? data : Buffer.from(data)
    waiting.push(isBinary ? bytes : bytes.toString('utf8'))
    if (waiting.length >= maxWaiting) socket.pause()
    wake()
  }
  const onError = (error: Error): void => {
    failure = error
    wake()
  }
  const onClose = (): void => {
    isOver = true
    wake()
  }
  socket.on('message', onMessage)
  socket.on('error', onError)
  socket.on('close', onClose)
  try {
    for (;;) {
      const next = waiting.shift()
      if (next !== undefined) {
        yield next
        continue
      }
      if (failure !== undefined) throw failure
      if (isOver) return
      socket.resume()
      await new Promise<void>((resolve) => (wake = resolve))
    }
  } finally {
    socket.off('message', onMessage)
    socket.off('error', onError)
    socket.off('close', onClose)
  }
}

/** Resolves when the connection is closed. */
export function whenClosed(connection: Duplex): Promise<void> {
  return new Promise((resolve) => {
    connection.once('close', () => resolve())
    if (connection.destroyed) resolve()
  })
}

/** Bytes are sent as a binary message, text as one of text. Resolves when the connection has accepted it, or is closed. */
export function sendMessage(socket: WebSocket, message: Uint8Array | string): Promise<void> {
  return new Promise((resolve) => {
    if (socket.readyState === socket.OPEN)
      socket.send(message, { binary: typeof message !== 'string' }, () => resolve())
    else resolve()
  })
}
