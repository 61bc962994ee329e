import { once } from 'node:events'
import type { Duplex, Readable } from 'node:stream'
import { FrameDecoder, encodeFrame, parseTerminalSize, writeFrame } from '../api/exec-frames.ts'
import type { Channel, ExecOutcome, Frame } from '../api/exec-frames.ts'
import type { Clock } from '../base/clock.ts'
import { errorMessage } from '../base/errors.ts'
import type { RunningCommand } from './pod-reach.ts'

/** How often to see, while a command takes no more input, whether the client is still there. */
const alivePeriodMs = 2000

/** Joins a running command with the client at the other end of an upgraded connection, until both are done. */
export async function serveExec(socket: Duplex, command: RunningCommand, clock: Clock): Promise<void> {
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
