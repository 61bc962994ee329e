import { Duplex } from 'node:stream'
import { createInflate } from 'node:zlib'
import type { Inflate } from 'node:zlib'
import { PoddError } from '../base/errors.ts'

/** How many unread bytes a stream buffers before no more is read from the connection. */
const streamBufferBytes = 256 * 1024
/** How many received bytes wait for a stream that isn't read before no more is read from the connection. */
const maxArrivedBytes = 2 * streamBufferBytes
const maxStreams = 2048
const maxDataBytes = 32 * 1024

interface StreamOwner {
  /** @param done called when the connection has room again, or is gone */
  send(parts: readonly Buffer[], done: () => void): void
  forget(stream: SpdyStream): void
}

/** One stream of a connection: its two directions end independently. */
export class SpdyStream extends Duplex {
  readonly id: number
  readonly headers: SpdyHeaders
  readonly #owner: StreamOwner
  #onRoom: () => void = () => {}
  #hasEnded = false
  #isReset = false

  constructor(owner: StreamOwner, id: number, headers: SpdyHeaders) {
    super({ readableHighWaterMark: streamBufferBytes, writableHighWaterMark: maxDataBytes })
    this.#owner = owner
    this.id = id
    this.headers = headers
    // The reader gets the error; a reset by the other side is not a defect.
    this.on('error', () => {})
  }

  /** Buffers received bytes; resolves when there is room for more. */
  async takeData(payload: Buffer): Promise<void> {
    if (this.destroyed || this.#hasEnded || payload.length === 0) return
    const room = new Promise<void>((resolve) => {
      this.#onRoom = resolve
    })
    if (!this.push(payload)) await room
  }

  /** The other side has finished sending. */
  takeEnd(): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.push(null)
  }

  /** The other side has reset the stream: received bytes are still read, as Go's clients do (`spdystream`). */
  takeReset(): void {
    this.#isReset = true
    if (this.readableLength === 0) {
      this.destroy()
      return
    }
    this.#owner.forget(this)
    this.once('end', () => this.destroy())
    this.takeEnd()
  }

  override _read(): void {
    this.#onRoom()
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, callback: (error?: Error) => void): void {
    const parts: Buffer[] = []
    for (let at = 0; at < chunk.length; at += maxDataBytes) {
      const part = chunk.subarray(at, at + maxDataBytes)
      parts.push(encodeDataHead(this.id, part.length, false), part)
    }
    this.#owner.send(parts, callback)
  }

  override _final(callback: (error?: Error) => void): void {
    this.#owner.send([encodeDataHead(this.id, 0, true)], callback)
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#onRoom()
    if (!this.#isReset && !(this.#hasEnded && this.writableFinished))
      this.#owner.send([encodeReset(this.id, resetStatus.cancelled)], () => {})
    this.#owner.forget(this)
    callback(error)
  }
}

/**
 * SPDY/3.1 over a connection, as `kubectl port-forward` and the container runtime speak it: many streams, no flow control
 * but the connection's own. A stream that is not read stops them all, so that memory stays bounded.
 */
export class SpdySession {
  /** Resolves when the connection has ended, and with it all streams. */
  readonly closed: Promise<void>
  readonly #connection: Duplex
  readonly #onStream: (stream: SpdyStream) => void
  readonly #streams = new Map<number, SpdyStream>()
  readonly #reader = new HeaderReader()
  readonly #writer = new HeaderWriter()
  readonly #waiting: (() => void)[] = []
  readonly #owner: StreamOwner
  #nextId = 1
  #lastId = 0

  /** @param onStream called with each stream that the other side opens */
  constructor(connection: Duplex, onStream: (stream: SpdyStream) => void) {
    this.#connection = connection
    this.#onStream = onStream
    this.#owner = {
      send: (parts, done) => this.#write(parts, done),
      forget: (stream) => void this.#streams.delete(stream.id),
    }
    const release = (): void => {
      for (const go of this.#waiting.splice(0)) go()
    }
    connection.on('drain', release)
    connection.on('error', () => {})
    connection.once('close', release)
    this.closed = this.#run()
  }

  /** Opens a stream from this side, which must be the client. */
  open(headers: SpdyHeaders): SpdyStream {
    const stream = new SpdyStream(this.#owner, this.#nextId, headers)
    this.#nextId += 2
    this.#streams.set(stream.id, stream)
    void this.#send(encodeOpen(stream.id, this.#writer.write(headers)))
    return stream
  }

  /** Sends GOAWAY and ends the connection. */
  close(): void {
    if (this.#connection.destroyed) return
    void this.#send(encodeControl(types.leave, Buffer.concat([uint32(this.#lastId), uint32(0)])))
    this.#connection.end()
  }

  async #run(): Promise<void> {
    const decoder = new SpdyDecoder()
    try {
      for await (const chunk of this.#arrivals())
        for (const frame of decoder.push(chunk)) await this.#take(frame)
    } catch {
      // Its bytes are not SPDY, which ends the connection, and its streams with it.
    }
    this.#connection.destroy()
    this.#reader.close()
    for (const stream of this.#streams.values()) stream.takeReset()
  }

  /**
   * What the connection brings, to its end. Where it is reset, all that had arrived before comes first: a runtime that closes
   * with unread input resets the connection, after a report that says why. Iteration over the connection itself would
   * lose that.
   */
  async *#arrivals(): AsyncGenerator<Uint8Array> {
    const connection = this.#connection
    const arrived: Uint8Array[] = []
    let bytes = 0
    let isOver = false
    let wake = (): void => {}
    const end = (): void => {
      isOver = true
      wake()
    }
    connection.on('data', (chunk: unknown) => {
      if (!(chunk instanceof Uint8Array)) return
      arrived.push(chunk)
      bytes += chunk.length
      if (bytes >= maxArrivedBytes) connection.pause()
      wake()
    })
    connection.once('end', end)
    connection.once('close', end)
    for (;;) {
      const chunk = arrived.shift()
      if (chunk !== undefined) {
        yield chunk
        bytes -= chunk.length
        if (bytes === 0) connection.resume()
      } else if (isOver || connection.destroyed) return
      else {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    }
  }

  async #take(frame: SpdyFrame): Promise<void> {
    switch (frame.kind) {
      case 'data': {
        const stream = this.#streams.get(frame.id)
        await stream?.takeData(frame.payload)
        if (frame.isLast) stream?.takeEnd()
        return
      }
      case 'open':
        return this.#accept(frame, await this.#reader.read(frame.block))
      case 'reply':
      case 'headers':
        // Each block is part of one zlib stream: it has to be decompressed, even if it is ignored.
        await this.#reader.read(frame.block)
        if (frame.isLast) this.#streams.get(frame.id)?.takeEnd()
        return
      case 'reset':
        this.#streams.get(frame.id)?.takeReset()
        return
      case 'ping':
        // Those with even numbers would be answers to podd's own, of which there are none.
        if (frame.id % 2 === 1) return this.#send(encodePing(frame.id))
        return
      case 'leave':
      case 'other':
        return
    }
  }

  async #accept(
    { id, isLast }: { readonly id: number; readonly isLast: boolean },
    headers: SpdyHeaders,
  ): Promise<void> {
    if (id % 2 === 0 || id <= this.#lastId) return this.#send(encodeReset(id, resetStatus.protocolError))
    this.#lastId = id
    if (this.#streams.size >= maxStreams) return this.#send(encodeReset(id, resetStatus.refused))
    const stream = new SpdyStream(this.#owner, id, headers)
    this.#streams.set(id, stream)
    await this.#send(encodeControl(types.reply, Buffer.concat([uint32(id), this.#writer.write({})])))
    if (isLast) stream.takeEnd()
    this.#onStream(stream)
  }

  #send(frame: Buffer): Promise<void> {
    return new Promise((resolve) => {
      this.#write([frame], resolve)
    })
  }

  #write(parts: readonly Buffer[], done: () => void): void {
    const connection = this.#connection
    let hasRoom = true
    if (!connection.destroyed && !connection.writableEnded) {
      connection.cork()
      for (const part of parts) hasRoom = connection.write(part)
      connection.uncork()
    }
    if (hasRoom || connection.destroyed) done()
    else this.#waiting.push(done)
  }
}

/** The frames of SPDY/3.1 that port-forward and the container runtime's streams need; all others are ignored. */
type SpdyFrame =
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
const maxFrameBytes = 1024 * 1024
const maxControlBytes = 64 * 1024
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
      if (length > (isControl ? maxControlBytes : maxFrameBytes)) throw badFrame('a frame is too large')
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

export function encodeReset(id: number, status: number): Buffer {
  return encodeControl(types.reset, Buffer.concat([uint32(id), uint32(status)]))
}

export function encodePing(id: number): Buffer {
  return encodeControl(types.ping, uint32(id))
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

function badFrame(what: string, cause?: unknown): PoddError {
  return new PoddError('BAD_FRAME', `the data on the connection violates SPDY/3.1: ${what}`, { cause })
}

const flush = Buffer.from([0, 0, 0, 0xff, 0xff])

type SpdyHeaders = Readonly<Record<string, string>>

/** The largest uncompressed block, in bytes: it holds a few names of streams and ports. */
const maxBlockBytes = 16 * 1024

/** The words of the dictionary of SPDY/3 (draft-mbelshe-httpbis-spdy-00, section 2.6.10.1), each with its length before it. */
const words =
  'options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow ' +
  'authorization cache-control connection content-base content-encoding content-language content-length ' +
  'content-location content-md5 content-range content-type date etag expect expires from host if-match ' +
  'if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma ' +
  'proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade ' +
  'user-agent vary via warning www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie ' +
  'keep-alive origin'

/** The rest of the dictionary, without lengths. */
const tail =
  '100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505' +
  '203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized' +
  '403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable' +
  'Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT' +
  'chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,' +
  'text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.'

export function spdyDictionary(): Buffer {
  const parts = words.split(' ').map((word) => lengthAndText(word.replace('_', ' ')))
  return Buffer.concat([...parts, Buffer.from(tail)])
}

/** Decompresses the header blocks of one direction of a connection, which are one zlib stream. */
class HeaderReader {
  readonly #inflate: Inflate
  #unpacked: Buffer[] = []
  #bytes = 0
  #fail: (error: Error) => void = () => {}

  constructor() {
    this.#inflate = createInflate({ dictionary: spdyDictionary() })
    this.#inflate.on('error', (error) => this.#fail(error))
    this.#inflate.on('data', (chunk: Buffer) => {
      this.#unpacked.push(chunk)
      this.#bytes += chunk.length
      if (this.#bytes > maxBlockBytes) this.#fail(badFrame('a header block is too large'))
    })
  }

  /** One block at a time. Throws PoddError BAD_FRAME. */
  async read(block: Uint8Array): Promise<SpdyHeaders> {
    this.#unpacked = []
    this.#bytes = 0
    await new Promise<void>((resolve, reject) => {
      this.#fail = (error) => reject(error)
      this.#inflate.write(block, (error) => (error ? reject(error) : resolve()))
    }).catch((error: unknown) => {
      throw badFrame('a header block can not be unpacked', error)
    })
    return parseHeaders(Buffer.concat(this.#unpacked))
  }

  close(): void {
    this.#fail(badFrame('the connection has ended'))
    this.#inflate.destroy()
  }
}

/** Encodes the header blocks of one direction as stored blocks, which need neither the dictionary nor state. */
export class HeaderWriter {
  #isFirst = true

  write(headers: SpdyHeaders): Buffer {
    const pairs = Object.entries(headers)
    const plain = Buffer.concat([
      uint32(pairs.length),
      ...pairs.flatMap(([name, value]) => [lengthAndText(name), lengthAndText(value)]),
    ])
    const stored = Buffer.alloc(5)
    stored.writeUInt16LE(plain.length, 1)
    stored.writeUInt16LE(~plain.length & 0xffff, 3)
    // The zlib header: deflate, window of 32 KiB, no dictionary.
    const head = this.#isFirst ? Buffer.from([0x78, 0x01]) : Buffer.alloc(0)
    this.#isFirst = false
    // An empty block flushes the reader, as zlib's sync flush does; Go's reader waits for it.
    return Buffer.concat([head, stored, plain, flush])
  }
}

function parseHeaders(bytes: Buffer): SpdyHeaders {
  let at = 0
  const count = (): number => {
    if (at + 4 > bytes.length) throw badFrame('a header block is cut short')
    at += 4
    return bytes.readUInt32BE(at - 4)
  }
  const text = (): string => {
    const length = count()
    if (at + length > bytes.length) throw badFrame('a header block is cut short')
    at += length
    return bytes.toString('utf8', at - length, at)
  }
  const headers = new Map<string, string>()
  for (let left = count(); left > 0; left -= 1) {
    const name = text().toLowerCase()
    headers.set(name, text())
  }
  return Object.fromEntries(headers)
}

function lengthAndText(text: string): Buffer {
  return Buffer.concat([uint32(Buffer.byteLength(text)), Buffer.from(text)])
}
