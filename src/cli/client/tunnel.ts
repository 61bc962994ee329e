import type { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'
import { PoddError } from '../../base/errors.ts'
import { SpdySession } from '../../runtime/spdy-session.ts'
import type { SpdyStream } from '../../runtime/spdy-session.ts'

/** One connection to a port of a pod, through a tunnel of its own. */
export interface ForwardedConnection {
  readonly data: Duplex
  /** Resolves with the error, if any, once the connection has ended. */
  readonly problem: Promise<PoddError | undefined>
}

/** The longest message about a failed connection, in characters. */
const mostProblemBytes = 16 * 1024

/** Opens a connection to a port over a WebSocket that carries SPDY/3.1. */
export async function openTunnel(socket: WebSocket, port: number): Promise<ForwardedConnection> {
  const { createWebSocketStream } = await import('ws')
  const session = new SpdySession(createWebSocketStream(socket), (stream) => stream.destroy())
  const headers = { port: String(port), requestid: '0' }
  const error = session.open({ streamtype: 'error', ...headers })
  const data = session.open({ streamtype: 'data', ...headers })
  error.end()
  const problem = readProblem(error).then((text) =>
    text === '' ? undefined : new PoddError('PORT_FORWARD_FAILED', text),
  )
  void problem.then(() => {
    if (data.closed) session.close()
    else data.once('close', () => session.close())
  })
  return { data, problem }
}

async function readProblem(stream: SpdyStream): Promise<string> {
  let text = ''
  try {
    for await (const chunk of stream) {
      if (Buffer.isBuffer(chunk) && text.length < mostProblemBytes) text += chunk.toString('utf8')
    }
  } catch {
    // The connection to the daemon broke: the other stream has ended as well.
  }
  return text
}
