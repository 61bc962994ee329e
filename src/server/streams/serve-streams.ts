import type { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'
import { errorMessage, PoddError } from '../../base/errors.ts'
import { joinStreams } from '../../base/http.ts'
import { SpdySession } from '../../runtime/spdy-session.ts'
import type { SpdyStream } from '../../runtime/spdy-session.ts'
import { ApiError } from '../requests/api-error.ts'
import { normalClosure, readMessages, sendMessage, whenClosed } from './web-socket-messages.ts'

/** A channel is one byte, and each port has two. */
const maxPorts = 128

/**
 * The ports that a client without SPDY asks for in the query (`cri-streaming/pkg/streaming/portforward/websocket.go`
 * NewV4Options, 1.36). Throws ApiError.
 */
export function readPorts(query: URLSearchParams): readonly number[] {
  const texts = query.getAll('ports').flatMap((text) => text.split(','))
  if (texts.length === 0) throw new ApiError(400, 'query parameter "ports" is required')
  if (texts.length > maxPorts) throw new ApiError(400, `at most ${maxPorts} ports can be forwarded at once`)
  return texts.map((text) => {
    const port = portOf(text)
    if (port === undefined) throw new ApiError(400, `unable to parse ${JSON.stringify(text)} as a port`)
    return port
  })
}

/**
 * Serves one connection to each port, as clients other than kubectl ask for them: channel 2n has the data of port n,
 * both ways, channel 2n+1 its error; each begins with the port, in two bytes, the low one first (`websocket.go` of the
 * same, handleWebSocketStreams). Runs until all ports or the client have ended; never rejects.
 */
export async function servePorts(
  { socket, connection }: { readonly socket: WebSocket; readonly connection: Duplex },
  ports: readonly number[],
  dial: (port: number) => Promise<Duplex>,
): Promise<void> {
  const send = (channel: number, bytes: Uint8Array): Promise<void> =>
    sendMessage(socket, Buffer.concat([Buffer.from([channel]), bytes]))
  const gone = whenClosed(connection)
  const tell = (index: number, error: unknown): Promise<void> =>
    send(2 * index + 1, Buffer.from(`error forwarding port ${ports[index]}: ${errorMessage(error)}`))
  const targets = ports.map(async (port, index) => {
    const told = Buffer.alloc(2)
    told.writeUInt16LE(port)
    await send(2 * index, told)
    await send(2 * index + 1, told)
    try {
      const target = await dial(port)
      // An error ends the connection, which its reader sees.
      target.on('error', () => {})
      void gone.then(() => target.destroy())
      return target
    } catch (error) {
      await tell(index, error)
      return undefined
    }
  })
  const outputs = targets.map(async (opening, index) => {
    const target = await opening
    if (target === undefined) return
    try {
      for await (const chunk of target) if (Buffer.isBuffer(chunk)) await send(2 * index, chunk)
    } catch (error) {
      // Of others the connection broke, or the client is gone.
      if (error instanceof PoddError) await tell(index, error)
    }
  })
  void takeInput(socket, targets).finally(() => connection.destroy())
  await Promise.race([Promise.all(outputs), gone])
  socket.resume()
  socket.close(normalClosure)
  await gone
}

/** Runs until the client ends the connection. Data that a port doesn't accept delays the others. */
async function takeInput(socket: WebSocket, targets: readonly Promise<Duplex | undefined>[]): Promise<void> {
  try {
    for await (const message of readMessages(socket)) {
      const bytes = Buffer.from(message)
      const channel = bytes[0] ?? 1
      const target = channel % 2 === 0 ? await targets[channel / 2] : undefined
      if (target === undefined || !target.writable || target.write(bytes.subarray(1))) continue
      await new Promise<void>((resolve) => {
        target.once('drain', resolve)
        target.once('close', resolve)
      })
    }
  } catch {
    // The client is gone, or sent an invalid frame.
  }
}

type Dial = (port: number) => Promise<Duplex>

/**
 * Serves forwarded connections over SPDY/3.1: a pair of streams each, for its data and its error, joined by their
 * header `requestid` (`kubelet/pkg/cri/streaming/portforward/httpstream.go`, 1.36). Runs until the client ends the
 * connection; never rejects.
 */
export async function serveForward(connection: Duplex, dial: Dial): Promise<void> {
  const single = new Map<string, SpdyStream>()
  const session = new SpdySession(connection, (stream) => {
    const port = portOf(stream.headers['port'])
    const id = stream.headers['requestid']
    const type = stream.headers['streamtype']
    if (port === undefined || id === undefined || (type !== 'data' && type !== 'error')) {
      stream.destroy()
      return
    }
    const other = single.get(id)
    if (other === undefined) {
      single.set(id, stream)
      stream.once('close', () => {
        if (single.get(id) === stream) single.delete(id)
      })
      return
    }
    single.delete(id)
    if (other.headers['streamtype'] === type) {
      other.destroy()
      stream.destroy()
      return
    }
    const [data, error] = type === 'data' ? [stream, other] : [other, stream]
    void forwardOne({ data, error }, port, dial)
  })
  await session.closed
}

async function forwardOne(
  { data, error }: { readonly data: SpdyStream; readonly error: SpdyStream },
  port: number,
  dial: Dial,
): Promise<void> {
  // The client writes nothing to it.
  error.resume()
  try {
    const target = await dial(port)
    if (data.destroyed) target.destroy()
    else await joinStreams(data, target)
    // A runtime that connects for podd says only then that it could not.
    if (target.errored instanceof PoddError) error.write(errorMessage(target.errored))
  } catch (problem) {
    error.write(errorMessage(problem))
    data.resume()
    data.end()
  }
  error.end()
}

function portOf(text: string | undefined): number | undefined {
  const port = /^\d{1,5}$/u.test(text ?? '') ? Number(text) : 0
  return port >= 1 && port <= 65_535 ? port : undefined
}

const internalError = 1011
/** The longest reason in a close frame, in bytes. */
const maxReasonBytes = 123

/**
 * Sends a log to its end over a WebSocket and closes it, as the API server does
 * (`apimachinery/pkg/util/httpstream/wsstream/stream.go`, 1.36). Ends when the client disconnects. Never rejects.
 */
export async function serveLog(
  { socket, connection }: { readonly socket: WebSocket; readonly connection: Duplex },
  body: AsyncIterable<Uint8Array>,
  inBase64: boolean,
): Promise<void> {
  const gone = whenClosed(connection)
  // The client's messages are dropped; reading detects its close.
  socket.resume()
  try {
    // It tells that the log was found, also while the container is silent.
    await sendMessage(socket, Buffer.alloc(0))
    for await (const chunk of body) {
      if (socket.readyState !== socket.OPEN) break
      await sendMessage(socket, inBase64 ? Buffer.from(chunk).toString('base64') : chunk)
    }
    socket.close(normalClosure)
  } catch (error) {
    socket.close(internalError, Buffer.from(errorMessage(error)).subarray(0, maxReasonBytes))
  }
  await gone
}
