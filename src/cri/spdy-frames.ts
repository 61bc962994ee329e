import { PoddError } from '../base/errors.ts'

/** The frames of SPDY/3.1 that port-forward and the container runtime's streams need; all others are ignored. */
export type SpdyFrame =
  | { readonly kind: 'data'; readonly id: number; readonly isLast: boolean; readonly payload: Buffer }
  | { readonly kind: 'open'; readonly id: number; readonly isLast: boolean; readonly block: Buffer }
  | { readonly kind: 'reply'; readonly id: number; readonly isLast: boolean; readonly block: Buffer }
  | { readonly kind: 'headers'; readonly id: number; readonly isLast: boolean; readonly block: Buffer }
  | { readonly kind: 'reset'; readonly id: number; readonly status: number }
  | { readonly kind: 'ping'; readonly id: number }
  | { readonly kind: 'leave' }
  | { readonly kind: 'other' }

/** Why a stream is reset. */
export const resetStatus = { protocolError: 1, refused: 3, cancelled: 5 } as const

const types = { open: 1, reply: 2, reset: 3, ping: 6, leave: 7, headers: 8 } as const

const headBytes = 8
/** Go's clients send up to 32 KiB, the result of one read; the format allows 16 MiB. */
const mostDataBytes = 1024 * 1024
const mostControlBytes = 64 * 1024
const fin = 1
const idMask = 0x7fff_ffff

/** Splits received bytes into frames. */
export class SpdyDecoder {
  /** Received bytes of an incomplete frame. */
  #pieces: Buffer[] = []
  #heldBytes = 0
  #neededBytes = headBytes

  /** The frames that are complete now. Throws PoddError BAD_FRAME for bytes that are not SPDY/3. */
  push(chunk: Uint8Array): readonly SpdyFrame[] {
    this.#pieces.push(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength))
    this.#heldBytes += chunk.length
    // A large frame may arrive byte by byte: its pieces are joined once.
    if (this.#heldBytes < this.#neededBytes) return []
    let rest = Buffer.concat(this.#pieces)
    const frames: SpdyFrame[] = []
    this.#neededBytes = headBytes
    while (rest.length >= headBytes) {
      const isControl = (rest.readUInt8(0) & 0x80) !== 0
      const length = rest.readUIntBE(5, 3)
      if (length > (isControl ? mostControlBytes : mostDataBytes)) throw badFrame('a frame is too large')
      this.#neededBytes = headBytes + length
      if (rest.length < this.#neededBytes) break
      const payload = rest.subarray(headBytes, this.#neededBytes)
      frames.push(isControl ? parseControl(rest, payload) : parseData(rest, payload))
      rest = rest.subarray(this.#neededBytes)
      this.#neededBytes = headBytes
    }
    this.#pieces = rest.length === 0 ? [] : [rest]
    this.#heldBytes = rest.length
    return frames
  }
}

function parseData(head: Buffer, payload: Buffer): SpdyFrame {
  return { kind: 'data', id: head.readUInt32BE(0) & idMask, isLast: (head.readUInt8(4) & fin) !== 0, payload }
}

function parseControl(head: Buffer, payload: Buffer): SpdyFrame {
  if ((head.readUInt16BE(0) & 0x7fff) !== 3) throw badFrame('the version of a frame is not 3')
  const isLast = (head.readUInt8(4) & fin) !== 0
  const idOf = (leastBytes: number): number => {
    if (payload.length < leastBytes) throw badFrame('a frame is cut short')
    return payload.readUInt32BE(0) & idMask
  }
  switch (head.readUInt16BE(2)) {
    case types.open:
      return { kind: 'open', id: idOf(10), isLast, block: payload.subarray(10) }
    case types.reply:
      return { kind: 'reply', id: idOf(4), isLast, block: payload.subarray(4) }
    case types.headers:
      return { kind: 'headers', id: idOf(4), isLast, block: payload.subarray(4) }
    case types.reset:
      return { kind: 'reset', id: idOf(8), status: payload.readUInt32BE(4) }
    case types.ping:
      if (payload.length < 4) throw badFrame('a frame is cut short')
      return { kind: 'ping', id: payload.readUInt32BE(0) }
    case types.leave:
      return { kind: 'leave' }
    default:
      return { kind: 'other' }
  }
}

/** The header of a data frame. */
export function encodeDataHead(id: number, payloadBytes: number, isLast: boolean): Buffer {
  const head = Buffer.alloc(headBytes)
  head.writeUInt32BE(id, 0)
  head.writeUInt8(isLast ? fin : 0, 4)
  head.writeUIntBE(payloadBytes, 5, 3)
  return head
}

export function encodeOpen(id: number, block: Buffer, isLast = false): Buffer {
  const fields = Buffer.alloc(10)
  fields.writeUInt32BE(id, 0)
  return encodeControl(types.open, Buffer.concat([fields, block]), isLast)
}

export function encodeReply(id: number, block: Buffer): Buffer {
  return encodeControl(types.reply, Buffer.concat([uint32(id), block]))
}

export function encodeReset(id: number, status: number): Buffer {
  return encodeControl(types.reset, Buffer.concat([uint32(id), uint32(status)]))
}

export function encodePing(id: number): Buffer {
  return encodeControl(types.ping, uint32(id))
}

/** @param lastId of the streams that the other side has opened */
export function encodeLeave(lastId: number): Buffer {
  return encodeControl(types.leave, Buffer.concat([uint32(lastId), uint32(0)]))
}

function encodeControl(type: number, payload: Buffer, isLast = false): Buffer {
  const head = Buffer.alloc(headBytes)
  head.writeUInt16BE(0x8003, 0)
  head.writeUInt16BE(type, 2)
  head.writeUInt8(isLast ? fin : 0, 4)
  head.writeUIntBE(payload.length, 5, 3)
  return Buffer.concat([head, payload])
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

function badFrame(what: string): PoddError {
  return new PoddError('BAD_FRAME', `the data on the connection violates SPDY/3.1: ${what}`)
}
