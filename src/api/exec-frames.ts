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
  #rest: Buffer = Buffer.alloc(0)

  /** The frames that are complete now. Throws PoddError BAD_FRAME for what is no such stream. */
  push(chunk: Uint8Array): readonly Frame[] {
    this.#rest = this.#rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([this.#rest, chunk])
    const frames: Frame[] = []
    while (this.#rest.length >= headBytes) {
      const channel = names.get(this.#rest.readUInt8(0))
      const length = this.#rest.readUInt32BE(1)
      if (channel === undefined || length > mostPayloadBytes)
        throw new PoddError('BAD_FRAME', "what came over the connection is not of podd's exec protocol")
      if (this.#rest.length < headBytes + length) break
      frames.push({ channel, payload: this.#rest.subarray(headBytes, headBytes + length) })
      this.#rest = this.#rest.subarray(headBytes + length)
    }
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
  return { kind: 'failed', message: 'podd did not say how the command ended' }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
