import type { Clock, Timer } from '../base/clock.ts'
import { errorMessage } from '../base/errors.ts'
import type { GrpcCall } from './grpc-call.ts'
import { maxMessageBytes } from './grpc-reply.ts'
import { GrpcSession } from './grpc-session.ts'
import type { KeepSocket } from './grpc-session.ts'
import { failed, Status } from './grpc-status.ts'

export type ChannelState = 'idle' | 'connecting' | 'ready' | 'failed' | 'closed'

export interface GrpcChannelOptions {
  readonly socketPath: string
  readonly clock: Clock
  /** Called after each change of `state`. */
  readonly onState?: (() => void) | undefined
  readonly keep?: KeepSocket | undefined
}

/** The delay before a failed connection is retried; gRPC's own default is 1 s, then up to 2 min. */
const firstReconnectMs = 25
const slowestReconnectMs = 1000
const reconnectFactor = 1.6

/**
 * gRPC over one unix socket. It connects for the first call, or on `connect`, and retries until it is connected; after a
 * loss it waits for the next call. A call waits for the first attempt, and fails at once with UNAVAILABLE after a failed
 * one.
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

  /** Connects, unless it is connected or connecting. */
  connect(): void {
    if (this.#state === 'idle') this.#dial()
  }

  /** Sends one message. The returned function cancels the call, in the server too; it ends with CANCELLED then. */
  call<Message>(call: GrpcCall<Message>): () => void {
    if (call.message.length > maxMessageBytes) {
      const details = `the message has ${call.message.length} bytes, more than the ${maxMessageBytes} that are sent`
      return this.#fail(call, Status.RESOURCE_EXHAUSTED, details)
    }
    this.connect()
    if (this.#state === 'ready') return this.#begin(call)
    if (this.#state !== 'connecting') return this.#fail(call, Status.UNAVAILABLE, this.#lastError)
    let cancel = (): void => {
      this.#waiting.delete(begin)
      cancel = this.#fail(call, Status.CANCELLED, 'the call is cancelled')
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
    this.#session?.close()
    this.#session = undefined
  }

  #dial(): void {
    const { socketPath, clock, keep } = this.#options
    this.#move('connecting')
    const session = new GrpcSession({
      socketPath,
      keep,
      onReady: () => {
        if (this.#session !== session) return
        this.#reconnectMs = firstReconnectMs
        this.#move('ready')
      },
      onLost: (error) => {
        if (this.#session !== session) return
        this.#session = undefined
        this.#lastError = error === undefined ? 'the connection broke' : errorMessage(error)
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
    return this.#session?.begin(call) ?? this.#fail(call, Status.UNAVAILABLE, this.#lastError)
  }

  /** Never while the caller still begins the call. */
  #fail({ onStatus }: Pick<GrpcCall<unknown>, 'onStatus'>, code: number, details: string): () => void {
    process.nextTick(() => onStatus(failed(code, details)))
    return () => {}
  }
}
