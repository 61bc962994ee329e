import { connect } from 'node:http2'
import type { ClientHttp2Session, ClientHttp2Stream, OutgoingHttpHeaders } from 'node:http2'
import { connect as connectSocket } from 'node:net'
import type { ChannelOptions } from '@grpc/grpc-js'
import { Status } from '@grpc/grpc-js/build/src/constants.js'
import type { Metadata } from '@grpc/grpc-js/build/src/metadata.js'
import { Http2SubchannelCall } from '@grpc/grpc-js/build/src/subchannel-call.js'
import type { SubchannelCallInterceptingListener } from '@grpc/grpc-js/build/src/subchannel-call.js'
import type { CallEventTracker, Transport } from '@grpc/grpc-js/build/src/transport.js'
import type { Clock } from '../base/clock.ts'

/** The kubelet's `maxMsgSize` (`cri-client/pkg/remote_runtime.go`); the JavaScript client's own is 4 MiB. */
export const maxMessageBytes = 16 * 1024 * 1024

const options: ChannelOptions = { 'grpc.max_receive_message_length': maxMessageBytes }

export interface GrpcSessionOptions {
  readonly socketPath: string
  readonly clock: Clock
  /** Called once the server has greeted. */
  readonly onReady: () => void
  /** Called once, when the connection can take no further calls. */
  readonly onLost: (error: Error | undefined) => void
}

/**
 * One connection to a unix socket, for grpc-js's calls to run on. grpc-js has more between a client and its calls:
 * resolvers, balancers, retries and interceptors, which one socket has no use for. They are a third of what a call costs, and
 * most of what grpc-js takes in memory.
 */
export class GrpcSession implements Transport {
  readonly #path: string
  readonly #clock: Clock
  readonly #session: ClientHttp2Session
  readonly #calls = new Set<Http2SubchannelCall>()
  readonly #onLost: (error: Error | undefined) => void
  #lost = false

  constructor({ socketPath, clock, onReady, onLost }: GrpcSessionOptions) {
    this.#path = socketPath
    this.#clock = clock
    this.#onLost = onLost
    const socket = connectSocket(socketPath)
    this.#session = connect('http://localhost', {
      createConnection: () => socket,
      // As grpc-js has it: Node's own limit breaks calls off.
      maxSessionMemory: Number.MAX_SAFE_INTEGER,
    })
    this.#session.once('remoteSettings', () => {
      if (this.#calls.size === 0) this.#session.unref()
      if (!this.#lost) onReady()
    })
    // The calls in flight go on; Node ends the session after them.
    this.#session.once('goaway', () => this.#letGo(undefined))
    this.#session.once('error', (error) => this.#disconnect(error))
    this.#session.once('close', () => this.#disconnect(undefined))
    socket.once('close', () => this.#disconnect(undefined))
  }

  /** Throws where the connection is lost and that doesn't show yet. */
  createCall(
    metadata: Metadata,
    host: string,
    method: string,
    listener: SubchannelCallInterceptingListener,
    tracker: Partial<CallEventTracker>,
  ): Http2SubchannelCall {
    const stream = this.#request({
      ...metadata.toHttp2Headers(),
      ':authority': host,
      ':method': 'POST',
      ':path': method,
      'content-type': 'application/grpc',
      te: 'trailers',
      'user-agent': 'podd',
    })
    const events: CallEventTracker = {
      addMessageSent: () => tracker.addMessageSent?.(),
      addMessageReceived: () => tracker.addMessageReceived?.(),
      onStreamEnd: (success) => tracker.onStreamEnd?.(success),
      onCallEnd: (status) => {
        this.#calls.delete(call)
        if (this.#calls.size === 0) this.#session.unref()
        tracker.onCallEnd?.(status)
      },
    }
    const call = new Http2SubchannelCall(stream, events, listener, this, 0)
    if (this.#calls.size === 0) this.#session.ref()
    this.#calls.add(call)
    return call
  }

  /** A connection that cannot take the call is not tried with the next one. */
  #request(headers: OutgoingHttpHeaders): ClientHttp2Stream {
    try {
      return this.#session.request(headers)
    } catch (error) {
      this.#disconnect(undefined)
      throw error
    }
  }

  getPeerName(): string {
    return this.#path
  }

  getOptions(): ChannelOptions {
    return options
  }

  getAuthContext(): Record<string, never> {
    return {}
  }

  /** Only channelz asks. */
  getChannelzRef(): never {
    throw new Error('no channelz')
  }

  /** Only a subchannel asks: here `onLost` tells. */
  addDisconnectListener(): never {
    throw new Error('no subchannel')
  }

  /** Ends every call in flight; the connection can't be used again. */
  shutdown(): void {
    this.#letGo(undefined)
    for (const call of this.#calls) call.cancelWithStatus(Status.UNAVAILABLE, 'the connection is closed')
    this.#session.close()
  }

  #letGo(error: Error | undefined): void {
    if (this.#lost) return
    this.#lost = true
    this.#onLost(error)
  }

  #disconnect(error: Error | undefined): void {
    this.#letGo(error)
    for (const call of this.#calls) call.onDisconnect()
    // A stream's own end may be on its way.
    this.#clock.startTimer(0, () => this.#session.destroy())
  }
}
