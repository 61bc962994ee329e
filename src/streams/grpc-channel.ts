import { Metadata } from '@grpc/grpc-js/build/src/metadata.js'
import { Status } from '@grpc/grpc-js/build/src/constants.js'
import type { Clock, Timer } from '../base/clock.ts'
import { errorMessage } from '../base/errors.ts'
import { GrpcSession, maxMessageBytes } from './grpc-session.ts'

/** What a call ended with. Only what came over the wire has a content type in its metadata. */
export interface GrpcStatus {
  readonly code: Status
  readonly details: string
  readonly metadata: Metadata
}

export interface GrpcCall<Message> {
  /** `/package.Service/Method` */
  readonly path: string
  readonly message: Uint8Array
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** What it throws ends the call with INTERNAL. */
  readonly decode: (bytes: Buffer) => Message
  readonly onMessage: (message: Message) => void
  /** Called once, after the last message. */
  readonly onStatus: (status: GrpcStatus) => void
}

export type ChannelState = 'idle' | 'connecting' | 'ready' | 'failed' | 'closed'

export interface GrpcChannelOptions {
  readonly socketPath: string
  readonly clock: Clock
  /** Called after each change of `state`. */
  readonly onState?: (() => void) | undefined
}

/** How soon a connection that failed is tried again; gRPC's own default is 1 s, then up to 2 min. */
const firstReconnectMs = 25
const slowestReconnectMs = 1000
const reconnectFactor = 1.6

/** Not compressed, and the length (gRPC over HTTP/2, Length-Prefixed-Message). */
const prefixBytes = 5

/**
 * gRPC over one unix socket. It is connected for the first call, or when told to, and tried again and again
 * from then until it is; after a loss it waits for the next call. A call waits while the first attempt is made, and fails at
 * once with UNAVAILABLE where that failed.
 */
export class GrpcChannel {
  readonly #options: GrpcChannelOptions
  readonly #waiting = new Set<() => void>()
  #state: ChannelState = 'idle'
  #session: GrpcSession | undefined
  #retry: Timer | undefined
  #reconnectMs = firstReconnectMs
  #lastError = 'not connected yet'

  constructor(options: GrpcChannelOptions) {
    this.#options = options
  }

  get state(): ChannelState {
    return this.#state
  }

  /** Begins to connect where that isn't done and isn't tried. */
  connect(): void {
    if (this.#state === 'idle') this.#dial()
  }

  /** Sends one message. The returned function cancels the call, in the server too; it ends with CANCELLED then. */
  call<Message>(call: GrpcCall<Message>): () => void {
    if (call.message.length > maxMessageBytes) {
      const details = `Attempted to send message with a size larger than ${maxMessageBytes}`
      return this.#fail(call, Status.RESOURCE_EXHAUSTED, details)
    }
    this.connect()
    if (this.#state === 'ready') return this.#begin(call)
    if (this.#state !== 'connecting') return this.#fail(call, Status.UNAVAILABLE, this.#lastError)
    let cancel = (): void => {
      this.#waiting.delete(begin)
      cancel = this.#fail(call, Status.CANCELLED, 'Cancelled on client')
    }
    const begin = (): void => {
      cancel = this.call(call)
    }
    this.#waiting.add(begin)
    return () => cancel()
  }

  /** Ends every call in flight; the connection can't be used again. */
  close(): void {
    this.#retry?.cancel()
    this.#lastError = 'the connection is closed'
    this.#move('closed')
    this.#session?.shutdown()
    this.#session = undefined
  }

  #dial(): void {
    const { socketPath, clock } = this.#options
    this.#move('connecting')
    const session = new GrpcSession({
      socketPath,
      clock,
      onReady: () => {
        if (this.#session !== session) return
        this.#reconnectMs = firstReconnectMs
        this.#move('ready')
      },
      onLost: (error) => {
        if (this.#session !== session) return
        this.#session = undefined
        this.#lastError = error === undefined ? 'Connection dropped' : errorMessage(error)
        if (this.#state === 'ready') return this.#move('idle')
        this.#retry = clock.startTimer(this.#reconnectMs, () => this.#dial())
        this.#reconnectMs = Math.min(this.#reconnectMs * reconnectFactor, slowestReconnectMs)
        this.#move('failed')
      },
    })
    this.#session = session
  }

  #move(state: ChannelState): void {
    if (this.#state === 'closed') return
    this.#state = state
    this.#options.onState?.()
    if (state === 'connecting') return
    const waiting = [...this.#waiting]
    this.#waiting.clear()
    for (const begin of waiting) begin()
  }

  #begin<Message>(call: GrpcCall<Message>): () => void {
    const { path, message, headers, decode, onMessage, onStatus } = call
    const metadata = new Metadata()
    for (const name in headers) metadata.set(name, headers[name] ?? '')
    const cancel = (code: Status, details: string): void => running?.cancelWithStatus(code, details)
    const onReceiveMessage = (framed: Buffer): void => {
      if (framed[0] !== 0)
        return cancel(Status.INTERNAL, 'the message is compressed, which was not asked for')
      let received: Message
      try {
        received = decode(framed.subarray(prefixBytes))
      } catch (error) {
        return cancel(Status.INTERNAL, `the message cannot be decoded: ${errorMessage(error)}`)
      }
      onMessage(received)
      running?.startRead()
    }
    const listener = { onReceiveMetadata() {}, onReceiveMessage, onReceiveStatus: onStatus }
    let running: ReturnType<GrpcSession['createCall']> | undefined
    try {
      running = this.#session?.createCall(metadata, 'localhost', path, listener, {})
    } catch (error) {
      this.#lastError = errorMessage(error)
    }
    if (running === undefined) return this.#fail(call, Status.UNAVAILABLE, this.#lastError)
    running.startRead()
    running.sendMessageWithContext({}, frame(message))
    running.halfClose()
    return () => cancel(Status.CANCELLED, 'Cancelled on client')
  }

  /** Never while the caller still begins the call. */
  #fail({ onStatus }: Pick<GrpcCall<unknown>, 'onStatus'>, code: Status, details: string): () => void {
    process.nextTick(() => onStatus({ code, details, metadata: new Metadata() }))
    return () => {}
  }
}

function frame(message: Uint8Array): Buffer {
  const framed = Buffer.allocUnsafe(prefixBytes + message.length)
  framed[0] = 0
  framed.writeUInt32BE(message.length, 1)
  framed.set(message, prefixBytes)
  return framed
}
