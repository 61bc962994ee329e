import { once } from 'node:events'
import { Readable } from 'node:stream'
import type { Duplex, Writable } from 'node:stream'
import { FrameDecoder, encodeFrame, parseOutcome, writeFrame } from '../../api/exec-frames.ts'
import type { ExecOutcome, Frame, TerminalSize } from '../../api/exec-frames.ts'
import { PoddError } from '../../base/errors.ts'

/** The terminal in front of which a person sits. */
export interface Terminal {
  size(): TerminalSize
  /** In raw mode every key is the command's, Ctrl-C too. */
  setRaw(isRaw: boolean): void
  /** Calls the listener when the size has changed; gives what ends that. */
  onResize(listener: () => void): () => void
}

export interface ExecStreams {
  /** Undefined where the command gets no input. */
  readonly stdin: AsyncIterable<Uint8Array | string> | undefined
  readonly stdout: Writable
  readonly stderr: Writable
  readonly terminal: Terminal | undefined
}

/**
 * Joins these streams with a command at the other end of an upgraded connection, until it has ended. Throws PoddError
 * DAEMON_GONE where the connection breaks before that, or INTERRUPTED.
 */
export async function runExec(
  socket: Duplex,
  streams: ExecStreams,
  signal: AbortSignal,
): Promise<ExecOutcome> {
  const { stdin, terminal } = streams
  const input = stdin === undefined ? undefined : stdin instanceof Readable ? stdin : Readable.from(stdin)
  const cut = (): void => void socket.destroy()
  signal.addEventListener('abort', cut, { once: true })
  if (signal.aborted) cut()
  socket.on('error', () => {})
  const endResize = terminal?.onResize(() => sendSize(socket, terminal))
  terminal?.setRaw(true)
  try {
    // The size may have changed since it was asked for.
    if (terminal !== undefined) sendSize(socket, terminal)
    if (input !== undefined) void sendInput(input, socket)
    const outcome = await takeOutput(socket, streams, signal)
    if (outcome !== undefined) return outcome
    if (signal.aborted) throw new PoddError('INTERRUPTED', 'interrupted')
    throw new PoddError('DAEMON_GONE', 'the connection to podd broke, and the command was killed', {
      hint: 'podd may have been stopped or restarted; try again.',
    })
  } finally {
    terminal?.setRaw(false)
    endResize?.()
    signal.removeEventListener('abort', cut)
    // A read that waits for a key would keep this process from its end.
    input?.destroy()
    socket.destroy()
  }
}

function sendSize(socket: Duplex, terminal: Terminal): void {
  if (!socket.destroyed) socket.write(encodeFrame('resize', JSON.stringify(terminal.size())))
}

async function sendInput(input: Readable, socket: Duplex): Promise<void> {
  try {
    for await (const chunk of input) {
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
      if (!(bytes instanceof Uint8Array)) continue
      if (!writeFrame(socket, 'stdin', bytes)) await once(socket, 'drain')
    }
  } catch {
    // Input that breaks off has ended; and a command that has ended takes none.
  }
  if (!socket.destroyed) socket.write(encodeFrame('closeStdin'))
}

/** Undefined where the connection ends without an outcome. */
async function takeOutput(
  socket: Duplex,
  streams: ExecStreams,
  signal: AbortSignal,
): Promise<ExecOutcome | undefined> {
  const decoder = new FrameDecoder()
  let outcome: ExecOutcome | undefined
  try {
    for await (const chunk of socket) {
      if (!Buffer.isBuffer(chunk)) continue
      for (const frame of decoder.push(chunk)) outcome = (await takeFrame(frame, streams, signal)) ?? outcome
      if (outcome !== undefined) break
    }
  } catch (error) {
    if (error instanceof PoddError) throw error
  }
  return outcome
}

async function takeFrame(
  { channel, payload }: Frame,
  { stdout, stderr }: ExecStreams,
  signal: AbortSignal,
): Promise<ExecOutcome | undefined> {
  if (channel === 'outcome') return parseOutcome(payload.toString('utf8'))
  const stream = channel === 'stdout' ? stdout : channel === 'stderr' ? stderr : undefined
  if (stream !== undefined && !stream.write(payload)) await once(stream, 'drain', { signal })
  return undefined
}
