import { connect as connectSocket } from 'node:net'
import type { Socket } from 'node:net'
import { encodeRequestHeaders, newStream } from './grpc-call.ts'
import type { GrpcCall, GrpcStream } from './grpc-call.ts'
import { failed, Status, statusOfReset } from './grpc-status.ts'
import type { GrpcStatus } from './grpc-status.ts'
import { HeaderDecoder } from './hpack.ts'
import {
  connectionPreface,
  contentOf,
  encodeFrame,
  encodeNumberFrame,
  encodeSettings,
  firstFrameBytes,
  firstWindowBytes,
  frameFlags,
  FrameReader,
  frameTypes,
  Http2Error,
  settingIds,
} from './http2-frames.ts'
import type { Frame } from './http2-frames.ts'

/** The receive window: how much of a reply may arrive before podd acknowledges it. Replies are read as they arrive. */
const windowBytes = 1024 * 1024
/** Far more than the headers of any reply. */
const mostHeaderBytes = 256 * 1024
const lastStreamId = 0x7fff_ffff
const mostWindowBytes = 0x7fff_ffff

const resetCancel = 8

/** Called with each connected socket, before anything is sent; the returned function is called when the socket has closed. */
export type KeepSocket = (socket: Socket) => () => void

export interface GrpcSessionOptions {
  readonly socketPath: string
  readonly keep?: KeepSocket | undefined
  /** Called once the server's SETTINGS have arrived. */
  readonly onReady: () => void
  /** Called once, when the connection can take no further calls. */
  readonly onLost: (error: Error | undefined) => void
}

/**
 * One connection to a unix socket for gRPC calls of one request message each, with the part of HTTP/2 (RFC 9113) that such
 * calls need. Node's own HTTP/2 also loads TLS, and takes three quarters of a call's time.
 */
export class GrpcSession {
  readonly #socket: Socket
  readonly #options: GrpcSessionOptions
  readonly #frames = new FrameReader()
  readonly #headers = new HeaderDecoder()
  readonly #streams = new Map<number, GrpcStream>()
  /** Calls that wait for others to end: the server limits concurrent streams. */
  readonly #waiting = new Set<GrpcStream>()
  #block: { readonly frame: Frame; readonly parts: Buffer[] } | undefined
  #nextId = 1
  #sendWindow = firstWindowBytes
  #streamWindow = firstWindowBytes
  #mostFrameBytes = firstFrameBytes
  #mostStreams = Number.POSITIVE_INFINITY
  #taken = 0
  #isReady = false
  #isLost = false

  constructor(options: GrpcSessionOptions) {
    this.#options = options
    this.#socket = connectSocket(options.socketPath)
    if (options.keep !== undefined) this.#keep(options.keep)
    this.#socket.on('data', (chunk: Buffer) => this.#receive(chunk))
    this.#socket.once('error', (error) => this.#disconnect(error))
    this.#socket.once('end', () => this.#disconnect(undefined))
    this.#socket.once('close', () => this.#disconnect(undefined))
    this.#socket.write(
      Buffer.concat([
        connectionPreface,
        encodeSettings([
          [settingIds.enablePush, 0],
          [settingIds.initialWindow, windowBytes],
        ]),
        encodeNumberFrame(frameTypes.windowUpdate, 0, windowBytes - firstWindowBytes),
      ]),
    )
  }

  /** The returned function cancels the call, in the server too. */
  begin<Message>(call: GrpcCall<Message>): () => void {
    const stream = newStream(call)
    this.#waiting.add(stream)
    this.#socket.ref()
    if (this.#isLost) this.#end(stream, failed(Status.UNAVAILABLE, 'the connection takes no further calls'))
    this.#startWaiting()
    return () => this.#cancel(stream, failed(Status.CANCELLED, 'the call is cancelled'))
  }

  /** Ends every call in flight; the connection can't be used again. */
  close(): void {
    this.#disconnect(undefined, 'the connection is closed')
  }

  #keep(keep: KeepSocket): void {
    this.#socket.once('connect', () => this.#socket.once('close', keep(this.#socket)))
  }

  #startWaiting(): void {
    for (const stream of this.#waiting) {
      if (this.#streams.size >= this.#mostStreams || this.#isLost) return
      this.#waiting.delete(stream)
      this.#start(stream)
    }
  }

  #start(stream: GrpcStream): void {
    stream.id = this.#nextId
    stream.sendWindow = this.#streamWindow
    this.#nextId += 2
    this.#streams.set(stream.id, stream)
    const head = encodeFrame(
      frameTypes.headers,
      frameFlags.endHeaders,
      stream.id,
      encodeRequestHeaders(stream.call),
    )
    this.#socket.write(Buffer.concat([head, ...this.#takeUnsent(stream)]))
    if (this.#nextId > lastStreamId) this.#letGo(undefined)
  }

  /** The unsent data that fits the server's windows, as frames. */
  #takeUnsent(stream: GrpcStream): Buffer[] {
    const frames: Buffer[] = []
    while (stream.unsent.length > 0) {
      const room = Math.min(this.#sendWindow, stream.sendWindow, this.#mostFrameBytes)
      if (room <= 0) break
      const chunk = stream.unsent.subarray(0, room)
      stream.unsent = stream.unsent.subarray(chunk.length)
      stream.sendWindow -= chunk.length
      this.#sendWindow -= chunk.length
      const flags = stream.unsent.length === 0 ? frameFlags.endStream : 0
      frames.push(encodeFrame(frameTypes.data, flags, stream.id, chunk))
    }
    return frames
  }

  #sendRest(): void {
    for (const stream of this.#streams.values())
      for (const frame of this.#takeUnsent(stream)) this.#socket.write(frame)
  }

  #receive(chunk: Buffer): void {
    if (this.#socket.destroyed) return
    try {
      for (const frame of this.#frames.read(chunk)) this.#takeFrame(frame)
    } catch (error) {
      if (!(error instanceof Http2Error)) throw error
      this.#disconnect(error)
    }
  }

  #takeFrame(frame: Frame): void {
    const { type, flags, streamId, payload } = frame
    if (this.#block !== undefined && type !== frameTypes.continuation)
      throw new Http2Error('a header block breaks off')
    if (!this.#isReady && type !== frameTypes.settings) throw new Http2Error('the server does not greet')
    if (type === frameTypes.data) this.#takeData(frame)
    else if (type === frameTypes.headers) this.#takeHeaders({ frame, parts: [contentOf(frame)] }, flags)
    else if (type === frameTypes.continuation) {
      if (this.#block === undefined) throw new Http2Error('a header block has no beginning')
      this.#block.parts.push(payload)
      this.#takeHeaders(this.#block, flags)
    } else if (type === frameTypes.reset) {
      const stream = this.#streams.get(streamId)
      if (stream !== undefined) this.#end(stream, statusOfReset(readNumber(payload, 0)))
    } else if (type === frameTypes.settings) this.#takeSettings(frame)
    else if (type === frameTypes.ping) {
      if ((flags & frameFlags.ack) === 0)
        this.#socket.write(encodeFrame(frameTypes.ping, frameFlags.ack, 0, payload))
    } else if (type === frameTypes.goAway) this.#takeGoAway(readNumber(payload, 0))
    else if (type === frameTypes.windowUpdate) this.#widen(streamId, readNumber(payload, 0))
    else if (type === frameTypes.pushPromise) throw new Http2Error('the server pushes')
  }

  #takeHeaders(block: { readonly frame: Frame; readonly parts: Buffer[] }, flags: number): void {
    this.#block = block
    const sizeBytes = block.parts.reduce((sum, part) => sum + part.length, 0)
    if (sizeBytes > mostHeaderBytes) throw new Http2Error('a header block is too large')
    if ((flags & frameFlags.endHeaders) === 0) return
    this.#block = undefined
    const headers = this.#headers.decode(Buffer.concat(block.parts))
    const stream = this.#streams.get(block.frame.streamId)
    if (stream === undefined) return
    const isLast = (block.frame.flags & frameFlags.endStream) !== 0
    const status = stream.reply.takeHeaders(headers, isLast)
    if (status === undefined) return
    if (isLast) this.#end(stream, status)
    else this.#cancel(stream, status)
  }

  #takeData(frame: Frame): void {
    this.#taken += frame.payload.length
    if (this.#taken > windowBytes / 2) {
      this.#socket.write(encodeNumberFrame(frameTypes.windowUpdate, 0, this.#taken))
      this.#taken = 0
    }
    const stream = this.#streams.get(frame.streamId)
    if (stream === undefined) return
    stream.taken += frame.payload.length
    const status = stream.reply.takeData(contentOf(frame))
    if (status !== undefined) this.#cancel(stream, status)
    else if ((frame.flags & frameFlags.endStream) !== 0) this.#end(stream, stream.reply.end())
    else if (stream.taken > windowBytes / 2) {
      this.#socket.write(encodeNumberFrame(frameTypes.windowUpdate, stream.id, stream.taken))
      stream.taken = 0
    }
  }

  #takeSettings({ flags, payload }: Frame): void {
    if ((flags & frameFlags.ack) !== 0) return
    for (let at = 0; at + 6 <= payload.length; at += 6) {
      const id = payload.readUInt16BE(at)
      const value = payload.readUInt32BE(at + 2)
      if (id === settingIds.mostStreams) this.#mostStreams = value
      else if (id === settingIds.mostFrameBytes) this.#mostFrameBytes = value
      else if (id === settingIds.initialWindow) {
        for (const stream of this.#streams.values()) stream.sendWindow += value - this.#streamWindow
        this.#streamWindow = value
      }
    }
    this.#socket.write(encodeFrame(frameTypes.settings, frameFlags.ack, 0, Buffer.alloc(0)))
    if (!this.#isReady) {
      this.#isReady = true
      this.#rest()
      this.#options.onReady()
    }
    this.#sendRest()
    this.#startWaiting()
  }

  #widen(streamId: number, bytes: number): void {
    if (streamId === 0) this.#sendWindow += bytes
    const stream = this.#streams.get(streamId)
    if (stream !== undefined) stream.sendWindow += bytes
    if (Math.max(this.#sendWindow, stream?.sendWindow ?? 0) > mostWindowBytes)
      throw new Http2Error('a window is too large')
    this.#sendRest()
  }

  /** GOAWAY: calls that the server accepted continue; the connection ends after them. */
  #takeGoAway(lastTaken: number): void {
    this.#letGo(undefined)
    const details = 'the server takes no further calls'
    for (const stream of [...this.#streams.values(), ...this.#waiting])
      if (stream.id === 0 || stream.id > lastTaken) this.#end(stream, failed(Status.UNAVAILABLE, details))
    this.#rest()
  }

  #cancel(stream: GrpcStream, status: GrpcStatus): void {
    if (this.#streams.has(stream.id))
      this.#socket.write(encodeNumberFrame(frameTypes.reset, stream.id, resetCancel))
    this.#end(stream, status)
  }

  #end(stream: GrpcStream, status: GrpcStatus): void {
    if (!this.#waiting.delete(stream) && !this.#streams.delete(stream.id)) return
    // The server ended a call before the whole request was sent.
    if (stream.unsent.length > 0 && stream.id !== 0 && status.isAnswer)
      this.#socket.write(encodeNumberFrame(frameTypes.reset, stream.id, resetCancel))
    stream.reply.close()
    process.nextTick(stream.call.onStatus, status)
    this.#startWaiting()
    this.#rest()
  }

  /** A connection without calls keeps no process alive; a lost one is closed with its last call. */
  #rest(): void {
    if (this.#streams.size + this.#waiting.size > 0) return
    if (this.#isLost) this.#socket.destroy()
    else if (this.#isReady) this.#socket.unref()
  }

  #letGo(error: Error | undefined): void {
    if (this.#isLost) return
    this.#isLost = true
    this.#options.onLost(error)
  }

  #disconnect(error: Error | undefined, details = 'the connection broke'): void {
    this.#letGo(error)
    for (const stream of [...this.#streams.values(), ...this.#waiting])
      this.#end(stream, failed(Status.UNAVAILABLE, details))
    this.#socket.destroy()
  }
}

/** Without the first bit, which is reserved in every field that podd reads. */
function readNumber(payload: Buffer, at: number): number {
  if (payload.length < at + 4) throw new Http2Error('a frame is too short')
  return payload.readUInt32BE(at) & 0x7fff_ffff
}
