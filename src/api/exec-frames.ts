import type { Writable } from 'node:stream'
import { PoddError } from '../base/errors.ts'

/**
 * What is said over a connection that was upgraded to `podd-exec/1`: frames of one byte for the channel, four for the
 * payload's length (big-endian), and the payload.
 *
 * From the client: `stdin` (bytes), `closeStdin` (nothing; the input has ended), `resize` (TerminalSize as JSON).
 * From the server: `stdout` and `stderr` (bytes), `outcome` (ExecOutcome as JSON, once, last), `alive` (nothing, and
 * to be ignored: it finds out whether the client is still there).
 *
 * Whoever closes the connection before the outcome hangs the command up.
 */
export const execProtocol = 'podd-exec/1'

export const channels = {
  stdin: 0,
  stdout: 1,
  stderr: 2,
  outcome: 3,
  resize: 4,
  closeStdin: 5,
  alive: 6,
} as const

export type Channel = keyof typeof channels

export interface Frame {
  readonly channel: Channel
  readonly payload: Buffer
}

/** How a command ended. */
export type ExecOutcome =
  | { readonly kind: 'exited'; readonly exitCode: number }
  /** podd lost it. */
  | { readonly kind: 'failed'; readonly message: string }

export interface TerminalSize {
  readonly columns: number
  readonly rows: number
}

const headBytes = 5
/** Far beyond what is read from a pipe at once. */
const mostPayloadBytes = 4 * 1024 * 1024

const names: ReadonlyMap<number, Channel> = new Map(
  Object.entries(channels).flatMap(([name, number]) => (isChannel(name) ? [[number, name] as const] : [])),
)

function isChannel(name: string): name is Channel {
  return Object.hasOwn(channels, name)
}

/** What stands before a payload. */
function encodeHead(channel: Channel, payloadBytes: number): Buffer {
  const head = Buffer.alloc(headBytes)
  head.writeUInt8(channels[channel], 0)
  head.writeUInt32BE(payloadBytes, 1)
  return head
}

export function encodeFrame(channel: Channel, payload: Uint8Array | string = ''): Buffer {
  const bytes = typeof payload === 'string' ? Buffer.from(payload) : payload
  return Buffer.concat([encodeHead(channel, bytes.length), bytes])
}

/** Sends a frame without copying its payload; false when the stream has taken enough for now. */
export function writeFrame(stream: Writable, channel: Channel, payload: Uint8Array): boolean {
  stream.cork()
  stream.write(encodeHead(channel, payload.length))
  const hasRoom = stream.write(payload)
  stream.uncork()
  return hasRoom
}

/** Finds the frames in what arrives in pieces. */
export class FrameDecoder {
  /** What has come and is in no frame yet: its first piece holds what is left of one that was read. */
  #pieces: Buffer[] = []
  #heldBytes = 0
  /** How many bytes make it worth to look again. */
  #neededBytes = headBytes

  /** The frames that are complete now. Throws PoddError BAD_FRAME for what is no such stream. */
  push(chunk: Uint8Array): readonly Frame[] {
    this.#pieces.push(Buffer.from(chunk))
    this.#heldBytes += chunk.length
    // A large frame may come byte by byte: it is put together once.
    if (this.#heldBytes < this.#neededBytes) return []
    const [first, ...more] = this.#pieces
    let rest = first === undefined || more.length > 0 ? Buffer.concat(this.#pieces) : first
    const frames: Frame[] = []
    this.#neededBytes = headBytes
    while (rest.length >= headBytes) {
      const channel = names.get(rest.readUInt8(0))
      const length = rest.readUInt32BE(1)
      if (channel === undefined || length > mostPayloadBytes)
        throw new PoddError('BAD_FRAME', "the data on the connection violates podd's exec protocol")
      this.#neededBytes = headBytes + length
      if (rest.length < this.#neededBytes) break
      frames.push({ channel, payload: rest.subarray(headBytes, this.#neededBytes) })
      rest = rest.subarray(this.#neededBytes)
      this.#neededBytes = headBytes
    }
    this.#pieces = rest.length === 0 ? [] : [rest]
    this.#heldBytes = rest.length
    return frames
  }
}

/** The size that a `resize` frame tells; undefined for anything else. */
export function parseTerminalSize(text: string): TerminalSize | undefined {
  const value = parseJson(text)
  if (typeof value !== 'object' || value === null || !('columns' in value) || !('rows' in value))
    return undefined
  const { columns, rows } = value
  if (typeof columns !== 'number' || typeof rows !== 'number') return undefined
  return isCharacterCount(columns) && isCharacterCount(rows) ? { columns, rows } : undefined
}

/** The kernel counts a terminal's columns and rows in 16 bits. */
function isCharacterCount(value: number): boolean {
  return Number.isInteger(value) && value > 0 && value < 65_536
}

export function parseOutcome(text: string): ExecOutcome {
  const value = parseJson(text)
  if (typeof value === 'object' && value !== null) {
    if ('exitCode' in value && typeof value.exitCode === 'number')
      return { kind: 'exited', exitCode: value.exitCode }
    if ('message' in value && typeof value.message === 'string')
      return { kind: 'failed', message: value.message }
  }
  return { kind: 'failed', message: 'podd did not report how the command ended' }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Cut short with the connection.
    return undefined
  }
}
