import type { IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { WebSocket } from 'ws'
import { PoddError } from '../../base/errors.ts'

/** Which WebSocket is asked for. */
interface WantedWebSocket {
  readonly socketPath: string
  readonly path: string
  readonly protocol: string
  readonly signal: AbortSignal
}

/** What the daemon answered instead of a WebSocket. */
export interface Refused {
  readonly refused: { readonly statusCode: number; readonly text: string }
}

/**
 * Asks the daemon for a WebSocket, whose messages wait until they are read. Rejects with what the connection failed with,
 * and with PoddError INTERRUPTED once the signal is aborted.
 */
export async function shakeHands(wanted: WantedWebSocket): Promise<WebSocket | Refused> {
  const result = await handshake(wanted)
  if (!('answer' in result)) return result
  const { answer } = result
  return { refused: { statusCode: answer.statusCode ?? 0, text: await readText(answer) } }
}

function handshake({
  socketPath,
  path,
  protocol,
  signal,
}: WantedWebSocket): Promise<WebSocket | { readonly answer: IncomingMessage }> {
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
      resolve({ answer })
    })
    socket.on('error', (error) => {
      settled()
      reject(error)
    })
  })
}

async function readText(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of response) if (Buffer.isBuffer(chunk)) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}
