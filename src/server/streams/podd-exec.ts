import { once } from 'node:events'
import type { Duplex, Readable } from 'node:stream'
import {
  FrameDecoder,
  encodeFrame,
  execProtocol,
  parseTerminalSize,
  writeFrame,
} from '../../api/exec-frames.ts'
import type { Channel, ExecOutcome, Frame } from '../../api/exec-frames.ts'
import { commandBytesHeader, decodeCommand, mostCommandBytes } from '../../api/exec-command.ts'
import type { Clock } from '../../base/clock.ts'
import { errorMessage } from '../../base/errors.ts'
import { ApiError } from '../requests/api-error.ts'
import type { RunningCommand } from '../requests/pod-reach.ts'
import type { ExecCodec } from './codecs.ts'
import { tooLong } from './command-limits.ts'

/** A client that sends a command sends all of it at once. */
const receiveMs = 30_000

/** podd's own: frames (see exec-frames.ts); the words stand in the query, or in the bytes after the request's head. */
export function poddExec(clock: Clock): ExecCodec {
  return {
    method: 'POST',
    root: '/podd/v1',
    answer: ({ upgrade }) => (upgrade === execProtocol ? { Upgrade: execProtocol } : undefined),
    async readCommand({ headers, query }, connection) {
      const announced = headers[commandBytesHeader]
      if (announced === undefined) return query.getAll('command')
      return decodeCommand(await readExactly(connection, countBytes(String(announced)), clock))
    },
    serve: (connection, command) => serveExec(connection, command, clock),
  }
}

/** How often to see, while a command takes no more input, whether the client is still there. */
const alivePeriodMs = 2000

/** Joins a running command with the client at the other end of an upgraded connection, until both are done. */
async function serveExec(socket: Duplex, command: RunningCommand, clock: Clock): Promise<void> {
  const gone = new AbortController()
  socket.on('error', () => {})
  socket.once('close', () => gone.abort())
  gone.signal.addEventListener('abort', () => void command.hangUp(), { once: true })

  void takeInput(socket, command, clock).finally(() => gone.abort())
  const outputs = [
    sendOutput(socket, 'stdout', command.stdout, gone.signal),
    ...(command.stderr === undefined ? [] : [sendOutput(socket, 'stderr', command.stderr, gone.signal)]),
  ]
  const outcome = await command.ended.then(
    (exitCode): ExecOutcome => ({ kind: 'exited', exitCode }),
    (error: unknown): ExecOutcome => ({ kind: 'failed', message: errorMessage(error) }),
  )
  await Promise.all(outputs)
  if (!socket.destroyed) socket.end(encodeFrame('outcome', JSON.stringify(outcome)))
}

/** Until the client ends the connection. */
async function takeInput(socket: Duplex, command: RunningCommand, clock: Clock): Promise<void> {
  const decoder = new FrameDecoder()
  try {
    for await (const chunk of socket) {
      if (!Buffer.isBuffer(chunk)) continue
      for (const frame of decoder.push(chunk)) {
        const taken = takeFrame(frame, command)
        if (taken !== undefined) await askWhile(taken, socket, clock)
      }
    }
  } catch {
    // The client has gone, or sent something that is no frame: the end of the connection ends the command.
    socket.destroy()
  }
}

function takeFrame({ channel, payload }: Frame, command: RunningCommand): Promise<void> | undefined {
  switch (channel) {
    case 'stdin':
      return command.write(payload)
    case 'closeStdin':
      return command.closeStdin()
    case 'resize': {
      const size = parseTerminalSize(payload.toString('utf8'))
      if (size !== undefined) void command.resize(size)
      return undefined
    }
    case 'stdout':
    case 'stderr':
    case 'outcome':
    case 'alive':
      return undefined
  }
}

/** A connection that isn't read doesn't tell that its other end has gone; one that is written to does. */
async function askWhile(taken: Promise<void>, socket: Duplex, clock: Clock): Promise<void> {
  const over = new AbortController()
  const asking = (async () => {
    for (;;) {
      await clock.sleep(alivePeriodMs, over.signal)
      // What waits to be sent finds that out too.
      if (socket.writableLength === 0) socket.write(encodeFrame('alive'))
    }
    // Ended by `over` alone.
  })().catch(() => {})
  try {
    await taken
  } finally {
    over.abort()
    await asking
  }
}

async function sendOutput(
  socket: Duplex,
  channel: Channel,
  stream: Readable,
  gone: AbortSignal,
): Promise<void> {
  try {
    for await (const chunk of stream) {
      if (!Buffer.isBuffer(chunk)) continue
      if (!writeFrame(socket, channel, chunk)) await once(socket, 'drain', { signal: gone })
    }
  } catch {
    // The client has gone, or something else holds the output of a command that has ended.
  }
}

function countBytes(text: string): number {
  const count = /^\d{1,15}$/u.test(text) ? Number(text) : 0
  if (count === 0) throw new ApiError(400, `${commandBytesHeader} must be a whole number, 1 or more`)
  if (count > mostCommandBytes) throw tooLong(count)
  return count
}

async function readExactly(socket: Duplex, count: number, clock: Clock): Promise<Buffer> {
  const over = new AbortController()
  const end = (): void => over.abort()
  const timer = clock.startTimer(receiveMs, end)
  socket.once('end', end)
  socket.once('close', end)
  try {
    const chunks: Buffer[] = []
    for (let received = 0; received < count;) {
      const chunk: unknown = socket.read()
      if (Buffer.isBuffer(chunk)) {
        chunks.push(chunk)
        received += chunk.length
      } else await once(socket, 'readable', { signal: over.signal })
    }
    const bytes = Buffer.concat(chunks)
    if (bytes.length > count) socket.unshift(bytes.subarray(count))
    return bytes.subarray(0, count)
  } catch {
    // The client has ended the connection, or time is up: only what is missing matters to it.
    throw new ApiError(400, `fewer than ${count} bytes of the command came`)
  } finally {
    timer.cancel()
    socket.off('end', end)
    socket.off('close', end)
  }
}
