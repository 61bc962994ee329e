/*
 * gRPC over one connection. What a channel needs is imported by the files of grpc-js that have it: its index loads the server
 * and all ways to spread calls over servers too, 0.5 MiB. The version is pinned.
 */
import type { Socket } from 'node:net'
import { CallCredentials } from '@grpc/grpc-js/build/src/call-credentials.js'
import { statusOrFromValue } from '@grpc/grpc-js/build/src/call-interface.js'
import type { StatusObject } from '@grpc/grpc-js/build/src/call-interface.js'
import { ChannelCredentials } from '@grpc/grpc-js/build/src/channel-credentials.js'
import type { SecureConnector } from '@grpc/grpc-js/build/src/channel-credentials.js'
import { ChannelImplementation } from '@grpc/grpc-js/build/src/channel.js'
import { ConnectivityState } from '@grpc/grpc-js/build/src/connectivity-state.js'
import { Status } from '@grpc/grpc-js/build/src/constants.js'
import { setup as setUpPickFirst } from '@grpc/grpc-js/build/src/load-balancer-pick-first.js'
import { Metadata } from '@grpc/grpc-js/build/src/metadata.js'
import { registerResolver } from '@grpc/grpc-js/build/src/resolver.js'
import type { Resolver, ResolverListener } from '@grpc/grpc-js/build/src/resolver.js'
import type { SubchannelAddress } from '@grpc/grpc-js/build/src/subchannel-address.js'
import type { GrpcUri } from '@grpc/grpc-js/build/src/uri-parser.js'
import { errorMessage } from '../base/errors.ts'

/** Where a server listens: a unix socket, or a port. */
export type ServerAddress = { readonly path: string } | { readonly host: string; readonly port: number }

/** Called with each connected socket, before anything is sent; the returned function is called when the socket has closed. */
export type KeepSocket = (socket: Socket) => () => void

export interface GrpcChannelOptions {
  readonly address: ServerAddress
  /** Called after each change of `state`. */
  readonly onState?: (() => void) | undefined
  readonly keep?: KeepSocket | undefined
  readonly userAgent?: string | undefined
  /** The largest message that is received; by default the kubelet's `maxMsgSize`. */
  readonly maxReceivedBytes?: number | undefined
  /** The delay before a failed connection is retried, which grows by 1.6 up to the longest one. */
  readonly reconnectMs?: { readonly first: number; readonly longest: number } | undefined
}

/** The status that a call ended with. */
export interface GrpcStatus {
  readonly code: Status
  readonly details: string
  /** Whether the server sent it. False where the connection broke, or the answer was cut short. */
  readonly isAnswer: boolean
}

export interface GrpcCall<Message> {
  /** `/package.Service/Method` */
  readonly path: string
  readonly message: Buffer
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Whether the call waits until the server is connected; without it, it ends with UNAVAILABLE after a failed attempt. */
  readonly isPatient?: boolean | undefined
  /** What it throws ends the call with INTERNAL. */
  readonly decode: (bytes: Buffer) => Message
  readonly onMessage: (message: Message) => void
  /** Called once, after the last message, and never while the call is begun or cancelled. */
  readonly onStatus: (status: GrpcStatus) => void
}

export type ChannelState = 'idle' | 'connecting' | 'ready' | 'failed' | 'closed'

const states: Readonly<Record<ConnectivityState, ChannelState>> = {
  [ConnectivityState.IDLE]: 'idle',
  [ConnectivityState.CONNECTING]: 'connecting',
  [ConnectivityState.READY]: 'ready',
  [ConnectivityState.TRANSIENT_FAILURE]: 'failed',
  [ConnectivityState.SHUTDOWN]: 'closed',
}

/** The kubelet's `maxMsgSize` (`cri-client/pkg/remote_runtime.go`); grpc-js receives 4 MiB unless told otherwise. */
const maxMessageBytes = 16 * 1024 * 1024

/** How much of a reply may arrive before it is acknowledged. Replies are read as they arrive. */
const windowBytes = 1024 * 1024

/** gRPC's own first delay is 1 s, then up to 2 min. */
const socketReconnectMs = { first: 25, longest: 1000 }

/** The longest delay of a timer: a connection without calls is kept. */
const neverMs = 0x7fff_ffff

const scheme = 'podd'
/** The option in which a channel has its ServerAddress, with the signal that ends its sockets. */
const addressOption = 'podd.address'

/**
 * Gives grpc-js the address of a channel as it is, without a URI around it. grpc-js hands it on to `net.connect`: with a
 * signal in it, a socket can be ended that grpc-js itself would leave open, because it is not connected yet or its server
 * has not greeted.
 */
class KnownAddress implements Resolver {
  readonly #listener: ResolverListener
  readonly #address: SubchannelAddress
  #isResolved = false

  constructor(_target: GrpcUri, listener: ResolverListener, options: Readonly<Record<string, unknown>>) {
    const address: unknown = options[addressOption]
    if (!isAddress(address)) throw new TypeError('a channel has no address')
    this.#listener = listener
    this.#address = address
  }

  static getDefaultAuthority(): string {
    return 'localhost'
  }

  updateResolution(): void {
    if (this.#isResolved) return
    this.#isResolved = true
    const endpoints = statusOrFromValue([{ addresses: [this.#address] }])
    process.nextTick(() => this.#listener(endpoints, {}, null, ''))
  }

  destroy(): void {
    this.#isResolved = false
  }
}

function isAddress(value: unknown): value is SubchannelAddress {
  return typeof value === 'object' && value !== null && ('path' in value || 'host' in value)
}

registerResolver(scheme, KnownAddress)
setUpPickFirst()

/**
 * Plaintext, as `ChannelCredentials.createInsecure()`, with each connected socket shown to `keep`. grpc-js has no other place
 * where its sockets can be seen; the version is pinned, and tests of kept connections fail where an update changes it.
 */
class ShownSockets extends ChannelCredentials {
  readonly #keep: KeepSocket

  constructor(keep: KeepSocket) {
    super()
    this.#keep = keep
  }

  _isSecure(): boolean {
    return false
  }

  _equals(other: ChannelCredentials): boolean {
    return other === this
  }

  _createSecureConnector(): SecureConnector {
    return {
      waitForReady: () => Promise.resolve(),
      connect: async (socket) => {
        socket.once('close', this.#keep(socket))
        return { socket, secure: false }
      },
      getCallCredentials: () => CallCredentials.createEmpty(),
      destroy() {},
    }
  }
}

/**
 * gRPC over one connection. It connects for the first call, or on `connect`, and retries until it is connected; after a
 * loss it waits for the next call. A call waits for the first attempt, and fails at once with UNAVAILABLE after a failed
 * one, unless it is patient.
 */
export class GrpcChannel {
  readonly #channel: ChannelImplementation
  readonly #ending = new AbortController()
  readonly #onState: (() => void) | undefined
  /** What ends the calls in flight. */
  readonly #calls = new Set<(code: Status, details: string) => void>()
  #isClosed = false

  constructor(options: GrpcChannelOptions) {
    const { address, keep, userAgent, reconnectMs = socketReconnectMs } = options
    this.#onState = options.onState
    const creds = keep === undefined ? ChannelCredentials.createInsecure() : new ShownSockets(keep)
    this.#channel = new ChannelImplementation(`${scheme}:server`, creds, {
      [addressOption]: { ...address, signal: this.#ending.signal },
      ...('host' in address ? { 'grpc.default_authority': authorityOf(address) } : {}),
      ...(userAgent === undefined ? {} : { 'grpc.primary_user_agent': userAgent }),
      'grpc.max_receive_message_length': options.maxReceivedBytes ?? maxMessageBytes,
      'grpc.max_send_message_length': maxMessageBytes,
      'grpc-node.flow_control_window': windowBytes,
      'grpc.initial_reconnect_backoff_ms': reconnectMs.first,
      'grpc.max_reconnect_backoff_ms': reconnectMs.longest,
      'grpc.client_idle_timeout_ms': neverMs,
      'grpc.enable_retries': 0,
      'grpc.enable_channelz': 0,
      'grpc.enable_http_proxy': 0,
      'grpc.service_config_disable_resolution': 1,
      'grpc.use_local_subchannel_pool': 1,
    })
    if (this.#onState !== undefined) this.#watch()
  }

  get state(): ChannelState {
    return states[this.#channel.getConnectivityState(false)]
  }

  /** Connects, unless it is connected or connecting. */
  connect(): void {
    if (!this.#isClosed) this.#channel.getConnectivityState(true)
  }

  /** Sends one message. The returned function cancels the call, in the server too; it ends with CANCELLED then. */
  call<Message>(call: GrpcCall<Message>): () => void {
    const { path, message, headers, decode, onMessage, onStatus } = call
    if (this.#isClosed) {
      process.nextTick(onStatus, unanswered(Status.UNAVAILABLE, 'the connection is closed'))
      return () => {}
    }
    const running = this.#channel.createCall(path, Infinity, null, null, null)
    const end = (code: Status, details: string): void => {
      if (this.#calls.delete(end)) running.cancelWithStatus(code, details)
    }
    this.#calls.add(end)
    running.start(metadataOf(call, headers), {
      onReceiveMetadata() {},
      onReceiveMessage: (bytes: Buffer) => {
        if (!this.#calls.has(end)) return
        const decoded = decodeSafely(decode, bytes)
        if (decoded.kind === 'failed') return end(Status.INTERNAL, decoded.details)
        onMessage(decoded.message)
        running.startRead()
      },
      onReceiveStatus: (status) => {
        this.#calls.delete(end)
        onStatus(readStatus(status))
      },
    })
    running.sendMessageWithContext({}, message)
    running.halfClose()
    running.startRead()
    return () => end(Status.CANCELLED, 'the call is cancelled')
  }

  /** Ends every call in flight; the connection can't be used again. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    for (const end of this.#calls) end(Status.UNAVAILABLE, 'the connection is closed')
    this.#channel.close()
    this.#ending.abort()
  }

  #watch(): void {
    const state = this.#channel.getConnectivityState(false)
    if (state === ConnectivityState.SHUTDOWN) return
    this.#channel.watchConnectivityState(state, Infinity, () => {
      this.#onState?.()
      this.#watch()
    })
  }
}

function authorityOf({ host, port }: { readonly host: string; readonly port: number }): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

function metadataOf(
  { isPatient = false }: Pick<GrpcCall<unknown>, 'isPatient'>,
  headers: GrpcCall<unknown>['headers'],
): Metadata {
  const metadata = new Metadata({ waitForReady: isPatient })
  for (const [name, value] of Object.entries(headers ?? {})) metadata.set(name, value)
  return metadata
}

function readStatus({ code, details, metadata }: StatusObject): GrpcStatus {
  // grpc-js gives no code where a message is compressed in a way that it doesn't know.
  if (typeof code !== 'number') return unanswered(Status.INTERNAL, 'a message cannot be read')
  // A failed call is answered by one block of headers. A status after the first message may mean that the server is shutting down.
  const isAnswer = metadata.get('content-type').length > 0
  return { code, details: isAnswer ? details : withoutTime(details), isAnswer }
}

/**
 * grpc-js adds the time to some failures to connect, and a note of its resolver's, which is empty here. Without them the same
 * failure has the same text, and is logged once.
 */
function withoutTime(details: string): string {
  return details.replace(/ \(\d{4}-\d\d-\d\dT[\d:.]+Z\)/u, '').replace(/\. Resolution note: $/u, '')
}

function unanswered(code: Status, details: string): GrpcStatus {
  return { code, details, isAnswer: false }
}

type Decoded<Message> =
  | { readonly kind: 'message'; readonly message: Message }
  | { readonly kind: 'failed'; readonly details: string }

function decodeSafely<Message>(decode: (bytes: Buffer) => Message, bytes: Buffer): Decoded<Message> {
  try {
    return { kind: 'message', message: decode(bytes) }
  } catch (error) {
    return { kind: 'failed', details: `the message cannot be decoded: ${errorMessage(error)}` }
  }
}
