import { once } from 'node:events'
import { Readable } from 'node:stream'
import type { Writable } from 'node:stream'
import type { WebSocket } from 'ws'
import {
  commandProtocols,
  decodeMessage,
  encodeMessage,
  formatTerminalSize,
  parseOutcome,
} from '../../api/remote-command.ts'
import type { CommandOutcome, TerminalSize } from '../../api/remote-command.ts'
import { PoddError } from '../../base/errors.ts'
import { readMessages, sendMessage } from '../../server/streams/web-socket-messages.ts'
import type { ApiClient } from './client.ts'

interface Terminal {
  size(): TerminalSize
  /** In raw mode every key goes to the command, including Ctrl-C. Returns the function that ends it. */
  makeRaw(): () => void
  /** Calls the listener when the size has changed; returns the function that unsubscribes. */
  onResize(listener: () => void): () => void
}

export interface ExecStreams {
  /** Undefined where the command gets no input. */
  readonly stdin: AsyncIterable<Uint8Array | string> | undefined
  readonly stdout: Writable
  readonly stderr: Writable
  readonly terminal: Terminal | undefined
}

/** The most bytes of one message. */
const maxInputBytes = 64 * 1024

/**
 * Joins these streams with the command or the container that is asked for at this path, until it has ended. Throws
 * ServerError where the daemon refuses, PoddError DAEMON_GONE where the connection breaks before the end, or INTERRUPTED.
 */
export async function runExec(
  client: ApiClient,
  path: string,
  streams: ExecStreams,
  signal: AbortSignal,
): Promise<CommandOutcome> {
  const socket = await client.openWebSocket(path, commandProtocols[0], signal)
  const { stdin, terminal } = streams
  const input = stdin === undefined ? undefined : stdin instanceof Readable ? stdin : Readable.from(stdin)
  const cut = (): void => socket.terminate()
  signal.addEventListener('abort', cut, { once: true })
  if (signal.aborted) cut()
  socket.on('error', () => {})
  const endResize = terminal?.onResize(() => sendSize(socket, terminal))
  const endRaw = terminal?.makeRaw()
  try {
    // The size may have changed since it was read.
    if (terminal !== undefined) sendSize(socket, terminal)
    if (input !== undefined) void sendInput(input, socket)
    const outcome = await takeOutput(socket, streams, signal)
    if (outcome !== undefined) return outcome
    if (signal.aborted) throw new PoddError('INTERRUPTED', 'interrupted')
    throw new PoddError('DAEMON_GONE', 'the connection to podd broke, and the command was killed', {
      hint: 'podd may have been stopped or restarted; try again.',
    })
  } finally {
    endRaw?.()
    endResize?.()
    signal.removeEventListener('abort', cut)
    // A pending read of the keyboard would keep this process alive.
    input?.destroy()
    socket.terminate()
  }
}

function sendSize(socket: WebSocket, terminal: Terminal): void {
  void sendMessage(socket, encodeMessage('resize', formatTerminalSize(terminal.size())))
}

async function sendInput(input: Readable, socket: WebSocket): Promise<void> {
  try {
    for await (const chunk of input) {
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
      if (!(bytes instanceof Uint8Array)) continue
      for (let at = 0; at < bytes.length; at += maxInputBytes)
        await sendMessage(socket, encodeMessage('stdin', bytes.subarray(at, at + maxInputBytes)))
    }
  } catch {
    // An input error ends the input; a command that has ended takes none.
  }
  await sendMessage(socket, encodeMessage('close', Buffer.from([0])))
}

/** Undefined where the connection ends without an outcome. */
async function takeOutput(
  socket: WebSocket,
  { stdout, stderr }: ExecStreams,
  signal: AbortSignal,
): Promise<CommandOutcome | undefined> {
  try {
    for await (const message of readMessages(socket)) {
      const { channel, payload } = decodeMessage(message)
      if (channel === 'error') return parseOutcome(payload.toString('utf8'))
      const stream = channel === 'stdout' ? stdout : channel === 'stderr' ? stderr : undefined
      if (stream !== undefined && payload.length > 0 && !stream.write(payload))
        await once(stream, 'drain', { signal })
    }
  } catch {
    // The connection broke, or the output was closed.
  }
  return undefined
}
