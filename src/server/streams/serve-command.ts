import type { Duplex, Readable } from 'node:stream'
import type { WebSocket } from 'ws'
import {
  decodeMessage,
  encodeMessage,
  formatFailure,
  formatOutcome,
  parseTerminalSize,
} from '../../api/remote-command.ts'
import type { ChannelMessage, CommandOutcome } from '../../api/remote-command.ts'
import type { Clock } from '../../base/clock.ts'
import { errorMessage } from '../../base/errors.ts'
import { readMessages, sendMessage } from './web-socket-messages.ts'
import type { RunningCommand } from '../requests/pod-reach.ts'

/** The interval of writes to a client while a command reads no input: only a write detects that the client is gone. */
const alivePeriodMs = 5000

const closeStatus = 1000

export interface CommandClient {
  readonly socket: WebSocket
  /** The connection under it. */
  readonly connection: Duplex
  /** The output streams that the client requested. */
  readonly wants: { readonly stdout: boolean; readonly stderr: boolean }
  /** Whether the client's protocol sends a Status for every outcome; the oldest one sends the text of a failure. */
  readonly saysAll: boolean
}

/**
 * Starts a command and joins it with a client, until both are done. The command is hung up when the client disconnects.
 * Never rejects.
 */
export async function serveCommand(
  { socket, connection, wants, saysAll }: CommandClient,
  start: () => Promise<RunningCommand>,
  clock: Clock,
): Promise<void> {
  const gone = new Promise<void>((resolve) => {
    connection.once('close', () => resolve())
    if (connection.destroyed) resolve()
  })
  // The API server signals with it that the streams are connected, and some clients wait for it.
  await sendMessage(socket, encodeMessage('stdout'))
  const outcome = await start().then(
    (command) => {
      void gone.then(() => command.hangUp())
      void takeInput(socket, command, clock).finally(() => {
        // A client that has closed the WebSocket properly is gone as well.
        connection.destroy()
      })
      return runToEnd(socket, command, wants)
    },
    (error: unknown): CommandOutcome => ({ kind: 'failed', message: errorMessage(error) }),
  )
  const told = saysAll ? formatOutcome(outcome) : formatFailure(outcome)
  if (told !== undefined) await sendMessage(socket, encodeMessage('error', told))
  // Reading must continue while input waits that is never read, to see the client's close.
  socket.resume()
  socket.close(closeStatus)
  await gone
}

async function runToEnd(
  socket: WebSocket,
  command: RunningCommand,
  wants: CommandClient['wants'],
): Promise<CommandOutcome> {
  const outputs = [
    sendOutput(wants.stdout ? socket : undefined, 'stdout', command.stdout),
    ...(command.stderr === undefined
      ? []
      : [sendOutput(wants.stderr ? socket : undefined, 'stderr', command.stderr)]),
  ]
  const outcome = await command.ended.then(
    (exitCode): CommandOutcome => ({ kind: 'exited', exitCode }),
    (error: unknown): CommandOutcome => ({ kind: 'failed', message: errorMessage(error) }),
  )
  await Promise.all(outputs)
  return outcome
}

/** Runs until the client ends the connection. */
async function takeInput(socket: WebSocket, command: RunningCommand, clock: Clock): Promise<void> {
  try {
    for await (const message of readMessages(socket)) {
      const taken = takeMessage(decodeMessage(message), command)
      if (taken !== undefined) await stayAlive(taken, socket, clock)
    }
  } catch {
    // The client is gone, or sent an invalid frame: the end of the connection ends the command.
  }
}

function takeMessage(
  { channel, payload }: ChannelMessage,
  command: RunningCommand,
): Promise<void> | undefined {
  switch (channel) {
    case 'stdin':
      return payload.length === 0 ? undefined : command.write(payload)
    case 'close':
      return payload[0] === 0 ? command.closeStdin() : undefined
    case 'resize': {
      const size = parseTerminalSize(payload.toString('utf8'))
      if (size !== undefined) void command.resize(size)
      return undefined
    }
    case 'stdout':
    case 'stderr':
    case 'error':
    case undefined:
      return undefined
  }
}

/**
 * While input isn't read, neither are the client's pings: sends unsolicited pongs, as kubectl gives up after 61 s
 * without one.
 */
async function stayAlive(taken: Promise<void>, socket: WebSocket, clock: Clock): Promise<void> {
  const over = new AbortController()
  const speaking = (async () => {
    for (;;) {
      await clock.sleep(alivePeriodMs, over.signal)
      // Pending output also detects whether the client is there.
      if (socket.bufferedAmount === 0 && socket.readyState === socket.OPEN) socket.pong()
    }
    // Only `over` ends it.
  })().catch(() => {})
  try {
    await taken
  } finally {
    over.abort()
    await speaking
  }
}

/** @param socket undefined: the output is read and dropped, so that the command doesn't block */
async function sendOutput(
  socket: WebSocket | undefined,
  channel: 'stdout' | 'stderr',
  stream: Readable,
): Promise<void> {
  try {
    for await (const chunk of stream) {
      if (socket === undefined || !Buffer.isBuffer(chunk)) continue
      await sendMessage(socket, encodeMessage(channel, chunk))
    }
  } catch {
    // Another process holds the output of a command that has ended.
  }
}
