import type { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'
import { errorMessage } from '../../base/errors.ts'
import { sendMessage } from './web-socket-messages.ts'

const normalClosure = 1000
const internalError = 1011
/** The longest reason in a close frame, in bytes. */
const mostReasonBytes = 123

/**
 * Sends a log to its end over a WebSocket and closes it, as the API server does
 * (`apimachinery/pkg/util/httpstream/wsstream/stream.go`, 1.36). Ends when the client disconnects. Never rejects.
 */
export async function serveLog(
  { socket, connection }: { readonly socket: WebSocket; readonly connection: Duplex },
  body: AsyncIterable<Uint8Array>,
  inBase64: boolean,
): Promise<void> {
  const gone = new Promise<void>((resolve) => {
    connection.once('close', () => resolve())
    if (connection.destroyed) resolve()
  })
  // The client's messages are dropped; reading detects its close.
  socket.resume()
  try {
    // It tells that the log was found, also while the container is silent.
    await sendMessage(socket, Buffer.alloc(0))
    for await (const chunk of body) {
      if (socket.readyState !== socket.OPEN) break
      await (inBase64 ? sendText(socket, Buffer.from(chunk).toString('base64')) : sendMessage(socket, chunk))
    }
    socket.close(normalClosure)
  } catch (error) {
    socket.close(internalError, Buffer.from(errorMessage(error)).subarray(0, mostReasonBytes))
  }
  await gone
}

/** Resolves when the message was sent, or the connection is closed. */
function sendText(socket: WebSocket, text: string): Promise<void> {
  return new Promise((resolve) => {
    if (socket.readyState === socket.OPEN) socket.send(text, () => resolve())
    else resolve()
  })
}
