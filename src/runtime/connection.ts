import { Status } from '@grpc/grpc-js/build/src/constants.js'
import type { Clock } from '../base/clock.ts'
import { Changes, untilAborted } from '../base/waits.ts'
import { GrpcChannel } from '../grpc/grpc-channel.ts'
import type { KeepSocket } from '../grpc/grpc-channel.ts'
import type { WireMethod } from '../grpc/load-proto.ts'
import { CriError, criErrorFrom } from './cri-runtime.ts'

/** The interval of questions to a runtime that accepts connections but isn't up yet. */
const startingPollMs = 25

/** The deadline of a connection to an existing socket, also when the runtime has been unavailable for long. */
const connectMs = 250

export type CallHeaders = Readonly<Record<string, string>>

/** The path of a `unix://` endpoint. Throws CriError RUNTIME_ENDPOINT for anything else. */
export function parseUnixEndpoint(endpoint: string): string {
  const path = /^unix:\/\/(\/.+)$/.exec(endpoint)?.[1]
  if (path !== undefined) return path
  throw new CriError('RUNTIME_ENDPOINT', `${JSON.stringify(endpoint)} is not the endpoint of a unix socket`, {
    hint: 'Write it as unix:///path/to/the.sock.',
  })
}

/**
 * One channel to the runtime's socket, which reconnects by itself after the runtime restarted. gRPC fails calls at once
 * without a connection; here they wait a short while in `ready`, so that a restart of the runtime is only a delay.
 */
export class RuntimeConnection {
  readonly endpoint: string
  readonly #channel: GrpcChannel
  readonly #clock: Clock
  readonly #reconnectWaitMs: number
  readonly #stateChanges = new Changes()
  #isStarting: (() => Promise<boolean>) | undefined
  #ready = false
  #closed = false
  #lostAtMs: number
  #opening: Promise<void> | undefined
  #connections = 0

  /**
   * @param endpoint `unix:///path/to.sock`
   * @param reconnectWaitMs how long after the loss of the runtime calls wait for its return before they fail
   */
  constructor(endpoint: string, clock: Clock, reconnectWaitMs: number, keep?: KeepSocket) {
    this.endpoint = endpoint
    this.#clock = clock
    this.#reconnectWaitMs = reconnectWaitMs
    this.#lostAtMs = clock.monotonicMs()
    const address = { path: parseUnixEndpoint(endpoint) }
    this.#channel = new GrpcChannel({ address, onState: () => this.#noteState(), keep })
  }

  /** The number of the current connection. What the runtime reported on an earlier one may not hold for it. */
  get connections(): number {
    return this.#connections
  }

  /** Whether the runtime is connected, as far as is known. */
  get isReady(): boolean {
    return this.#ready
  }

  /** Sets what tells whether a connected runtime is still starting; runs once per connection, before calls. */
  probeWith(isStarting: () => Promise<boolean>): void {
    this.#isStarting = isStarting
  }

  /**
   * Resolves when the runtime is connected, or when it has been unavailable for longer than calls wait: the call that
   * follows then fails with the reason. Rejects only with the signal's reason.
   */
  async ready(signal?: AbortSignal): Promise<void> {
    if (this.#ready) return
    signal?.throwIfAborted()
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined
    })
    await untilAborted(this.#opening, signal)
  }

  /**
   * Sends one call at once, whatever the state of the connection. Rejects with a CriError, or with the
   * signal's reason, which also cancels the call.
   */
  unary<Request, Reply>(
    { path, requestSerialize, responseDeserialize }: WireMethod<Request, Reply>,
    request: Request,
    signal: AbortSignal,
    headers?: CallHeaders,
  ): Promise<Reply> {
    return new Promise((resolve, reject) => {
      let reply: Reply | undefined
      const cancel = this.#channel.call({
        path,
        message: requestSerialize(request),
        headers,
        decode: responseDeserialize,
        onMessage: (message) => {
          reply = message
        },
        onStatus: (status) => {
          signal.removeEventListener('abort', onAbort)
          if (status.code !== Status.OK) reject(criErrorFrom(status, methodName(path)))
          else if (reply === undefined) reject(noReply(path))
          else resolve(reply)
        },
      })
      const onAbort = (): void => {
        reject(signal.reason)
        cancel()
      }
      signal.addEventListener('abort', onAbort, { once: true })
    })
  }

  /** Opens a stream of replies. Resolves when the runtime ends it; rejects as `unary` does. */
  stream<Request, Reply>(
    { path, requestSerialize, responseDeserialize }: WireMethod<Request, Reply>,
    request: Request,
    onMessage: (message: Reply) => void,
    signal: AbortSignal,
    headers?: CallHeaders,
  ): Promise<void> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted()
      const cancel = this.#channel.call({
        path,
        message: requestSerialize(request),
        headers,
        decode: responseDeserialize,
        onMessage,
        onStatus: (status) => {
          signal.removeEventListener('abort', cancel)
          if (signal.aborted) reject(signal.reason)
          else if (status.code !== Status.OK) reject(criErrorFrom(status, methodName(path)))
          else resolve()
        },
      })
      signal.addEventListener('abort', cancel, { once: true })
    })
  }

  /** Call it when a call found no connection, which it may learn before the channel does. */
  suspect(): void {
    if (!this.#ready) return
    this.#ready = false
    this.#lostAtMs = this.#clock.monotonicMs()
  }

  /** Ends every call in flight; the connection can't be used again. */
  close(): void {
    this.#closed = true
    this.#channel.close()
    this.#stateChanges.note()
  }

  async #open(): Promise<void> {
    const patientUntilMs = this.#lostAtMs + this.#reconnectWaitMs
    const untilMs = Math.max(patientUntilMs, this.#clock.monotonicMs() + connectMs)
    while (!this.#closed) {
      this.#channel.connect()
      const { state } = this.#channel
      const nowMs = this.#clock.monotonicMs()
      if (state === 'ready') {
        const starting = nowMs < untilMs && (await this.#isStarting?.()) === true
        if (!starting) return this.#markReady()
        await this.#clock.sleep(startingPollMs)
      } else if (nowMs >= (state === 'failed' ? patientUntilMs : untilMs)) {
        return
      } else {
        await this.#stateChanges.next(this.#clock, untilMs - nowMs)
      }
    }
  }

  #markReady(): void {
    if (this.#closed || this.#channel.state !== 'ready') return
    this.#ready = true
    this.#connections += 1
  }

  #noteState(): void {
    if (this.#channel.state !== 'ready') this.suspect()
    this.#stateChanges.note()
  }
}

function noReply(path: string): CriError {
  const method = methodName(path)
  return new CriError('RUNTIME_BAD_REPLY', `${method}: the runtime answered without a message`, { method })
}

/** `/runtime.v1.RuntimeService/Version` gives `Version`. */
function methodName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}
