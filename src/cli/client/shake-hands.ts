import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { WebSocket } from 'ws'
import { PoddError } from '../../base/errors.ts'

/**
 * Asks the daemon for a WebSocket, whose messages wait until they are read; resolves with what it answers instead. Rejects
 * with what the connection failed with, and with PoddError INTERRUPTED once the signal is aborted.
 */
export function shakeHands(
  socketPath: string,
  path: string,
  protocol: string,
  signal: AbortSignal,
): Promise<WebSocket | { readonly statusCode: number; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(`ws://podd${path}`, {
      createConnection: () => connect(socketPath),
      headers: { 'Sec-WebSocket-Protocol': protocol },
      perMessageDeflate: false,
      skipUTF8Validation: true,
    })
    const abort = (): void => {
      socket.terminate()
      reject(new PoddError('INTERRUPTED', 'interrupted', { cause: signal.reason }))
    }
    signal.addEventListener('abort', abort, { once: true })
    const settled = (): void => signal.removeEventListener('abort', abort)
    // The name of SPDY's tunnel has a slash, with which `ws` takes none: it is asked for and taken here.
    socket.once('upgrade', (response) => {
      if (response.headers['sec-websocket-protocol'] === protocol)
        delete response.headers['sec-websocket-protocol']
    })
    socket.once('open', () => {
      settled()
      socket.pause()
      resolve(socket)
    })
    socket.once('unexpected-response', (_request, answer) => {
      settled()
      resolve(text(answer).then((body) => ({ statusCode: answer.statusCode ?? 0, text: body })))
    })
    socket.on('error', (error) => {
      settled()
      reject(error)
    })
  })
}
