import { Duplex } from 'node:stream'
import {
  SpdyDecoder,
  encodeDataHead,
  encodeLeave,
  encodeOpen,
  encodePing,
  encodeReply,
  encodeReset,
  resetStatus,
} from './spdy-frames.ts'
import type { SpdyFrame } from './spdy-frames.ts'
import { HeaderReader, HeaderWriter } from './spdy-headers.ts'
import type { SpdyHeaders } from './spdy-headers.ts'

/** How many unread bytes a stream buffers before no more is read from the connection. */
const streamBufferBytes = 256 * 1024
const mostStreams = 2048
const mostDataBytes = 32 * 1024

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
    super({ readableHighWaterMark: streamBufferBytes, writableHighWaterMark: mostDataBytes })
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
    for (let at = 0; at < chunk.length; at += mostDataBytes) {
      const part = chunk.subarray(at, at + mostDataBytes)
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
    void this.#send(encodeLeave(this.#lastId))
    this.#connection.end()
  }

  async #run(): Promise<void> {
    const decoder = new SpdyDecoder()
    try {
      for await (const chunk of this.#connection) {
        if (!(chunk instanceof Uint8Array)) continue
        for (const frame of decoder.push(chunk)) await this.#take(frame)
      }
    } catch {
      // The connection broke, or its bytes are not SPDY: either ends it, and its streams with it.
    }
    this.#connection.destroy()
    this.#reader.close()
    for (const stream of this.#streams.values()) stream.takeReset()
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
    if (this.#streams.size >= mostStreams) return this.#send(encodeReset(id, resetStatus.refused))
    const stream = new SpdyStream(this.#owner, id, headers)
    this.#streams.set(id, stream)
    await this.#send(encodeReply(id, this.#writer.write({})))
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
