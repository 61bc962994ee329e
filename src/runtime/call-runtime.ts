import type { MethodDefinition, ServiceDefinition } from '@grpc/grpc-js'
import protobuf from 'protobufjs/minimal.js'
import { TurnPace, startDeadline } from '../base/clock.ts'
import type { Clock } from '../base/clock.ts'
import { trace } from '../base/trace.ts'
import { untilAborted } from '../base/waits.ts'
import type { WireMethod } from '../grpc/load-proto.ts'
import type { RuntimeConnection } from './connection.ts'
import { CriError, criErrorFrom, isCriError } from './cri-runtime.ts'
import type { CallOptions } from './cri-runtime.ts'

/**
 * What happens to a call whose caller stops waiting. A call that reaches its deadline is cancelled whatever it is: that is
 * how a runtime learns that something it waits for hangs, and rolls back.
 */
export type CallKind =
  /** Cancelled, as its answer is not needed; sent again once if the connection broke under it. */
  | 'read'
  /** Cancelled, which stops the work (a pull, an exec). */
  | 'work'
  /** Left to run its course; one that wasn't sent yet isn't sent. */
  | 'change'

/** One RPC, as a service's table states it. */
export interface RpcSpec<Request, Reply> {
  readonly kind: CallKind
  /** Milliseconds until the call is given up; undefined: never. */
  readonly deadlineMs: (request: Request) => number | undefined
  /** What the reply lacks, or undefined when it is complete. */
  readonly check?: (reply: Reply) => string | undefined
  /** The reply where the runtime answers NotFound: containerd 1.6 and newer ones differ in this. */
  readonly whenAbsent?: Reply
  /** The call is about the runtime itself: no gate holds it back. */
  readonly isUngated?: boolean
  /** The reply is one list of messages, perhaps of thousands: it is decoded in turns of the event loop. */
  readonly isList?: boolean
}

/** Holds back the calls of a service while the runtime's lists are unreliable. */
export interface CallGate {
  /** Whether calls may be sent on the current connection. */
  isOpen(): boolean
  /** Resolves once the gate is open. Rejects with why it stays closed, or with the signal's reason. */
  pass(signal: AbortSignal): Promise<void>
}

/** Makes one method of a service; `method` is the RPC's name: `RunPodSandbox`. */
export type BindRpc = <Request, Reply>(
  method: string,
  spec: RpcSpec<Request, Reply>,
) => (request: Request, options?: CallOptions) => Promise<Reply>

/** Called for every call that ended, for counting; not where its caller stopped waiting. */
export type CallObserver = (method: string, durationMs: number, ok: boolean) => void

/** What calls go over; see RuntimeConnection. */
export interface CallChannel {
  readonly isReady: boolean
  ready(signal?: AbortSignal): Promise<void>
  unary<Request, Reply>(
    method: WireMethod<Request, Reply>,
    request: Request,
    signal: AbortSignal,
  ): Promise<Reply>
  suspect(): void
}

/** An RPC as the wire has it, and as its service's table states it. */
interface BoundRpc<Request, Reply> {
  readonly method: string
  readonly definition: MethodDefinition<Request, Reply>
  readonly spec: RpcSpec<Request, Reply>
}

/** Sends the calls of one service: waits for the connection, bounds the call, checks the reply, names the error. */
export class RuntimeCaller {
  readonly #connection: CallChannel
  readonly #service: ServiceDefinition
  readonly #clock: Clock
  readonly #onCall: CallObserver | undefined
  #gate: CallGate | undefined

  constructor(connection: CallChannel, service: ServiceDefinition, clock: Clock, onCall?: CallObserver) {
    this.#connection = connection
    this.#service = service
    this.#clock = clock
    this.#onCall = onCall
  }

  gateWith(gate: CallGate): void {
    this.#gate = gate
  }

  readonly bind: BindRpc = (method, spec) => {
    const rpc = { method, definition: this.#definition(method), spec }
    return (request, options) => this.#call(rpc, request, options ?? {})
  }

  /** Sends a call at once and only once, whatever the state of the connection, to probe for a service. */
  async ask(method: string, request: object, deadlineMs: number): Promise<unknown> {
    using deadline = startDeadline(this.#clock, deadlineMs, () => timeoutError(method, deadlineMs))
    return await this.#connection.unary(this.#definition(method), request, deadline.signal)
  }

  async #call<Request, Reply>(
    rpc: BoundRpc<Request, Reply>,
    request: Request,
    options: CallOptions,
  ): Promise<Reply> {
    const { method, spec } = rpc
    const startedMs = this.#clock.monotonicMs()
    let ok = false
    try {
      const reply = await this.#bounded(rpc, request, options)
      const lack = spec.check?.(reply)
      if (lack !== undefined) throw new CriError('RUNTIME_BAD_REPLY', `${method}: ${lack}`, { method })
      ok = true
      return reply
    } finally {
      // What was cancelled is no error of the runtime, and its duration tells nothing of it.
      const isCancelled = !ok && options.signal?.aborted === true
      if (!isCancelled) this.#onCall?.(method, this.#clock.monotonicMs() - startedMs, ok)
    }
  }

  /** Applies the call's deadline and the caller's signal. */
  async #bounded<Request, Reply>(
    rpc: BoundRpc<Request, Reply>,
    request: Request,
    { signal, deadlineMs = rpc.spec.deadlineMs(request), ...choices }: CallOptions,
  ): Promise<Reply> {
    const { method, spec } = rpc
    signal?.throwIfAborted()
    const cancel = new AbortController()
    const onAbort = (): void => cancel.abort(signal?.reason)
    const timer =
      deadlineMs === undefined
        ? undefined
        : this.#clock.startTimer(deadlineMs, () => cancel.abort(timeoutError(method, deadlineMs)))
    if (spec.kind !== 'change') signal?.addEventListener('abort', onAbort, { once: true })
    const reply = this.#send(rpc, request, cancel.signal, { ...choices, signal }).finally(() => {
      timer?.cancel()
      signal?.removeEventListener('abort', onAbort)
    })
    return spec.kind === 'change' ? await untilAborted(reply, signal) : await reply
  }

  async #send<Request, Reply>(
    rpc: BoundRpc<Request, Reply>,
    request: Request,
    cancel: AbortSignal,
    { signal, onSent, isUngated = rpc.spec.isUngated }: CallOptions,
  ): Promise<Reply> {
    const { method, spec } = rpc
    for (let tries = 1; ; tries += 1) {
      await this.#connection.ready(cancel)
      if (isUngated !== true) await this.#passGate(cancel)
      signal?.throwIfAborted()
      if (this.#connection.isReady) onSent?.()
      trace?.('sending', method)
      try {
        const reply = await this.#unary(rpc, request, cancel)
        trace?.('answered', method)
        return reply
      } catch (error) {
        if (isCriError(error, 'RUNTIME_NOT_FOUND') && spec.whenAbsent !== undefined) return spec.whenAbsent
        if (!isCriError(error, 'RUNTIME_UNAVAILABLE')) throw error
        this.#connection.suspect()
        if (spec.kind !== 'read' || tries > 1) throw error
      }
    }
  }

  async #unary<Request, Reply>(
    { method, definition, spec: { isList } }: BoundRpc<Request, Reply>,
    request: Request,
    cancel: AbortSignal,
  ): Promise<Reply> {
    if (isList !== true) return this.#connection.unary(definition, request, cancel)
    const { path, requestSerialize, responseDeserialize } = definition
    const wire = { path, requestSerialize, responseDeserialize: (bytes: Buffer) => bytes }
    const bytes = await this.#connection.unary(wire, request, cancel)
    try {
      return await decodeList(bytes, responseDeserialize, new TurnPace(this.#clock))
    } catch (error) {
      throw criErrorFrom(error, method)
    }
  }

  /** Waits for the gate, which opens for one connection: by then there may be another one. */
  async #passGate(cancel: AbortSignal): Promise<void> {
    while (this.#gate?.isOpen() === false) {
      await this.#gate.pass(cancel)
      await this.#connection.ready(cancel)
    }
  }

  #definition(method: string): ServiceDefinition[string] {
    const definition = this.#service[method]
    if (definition === undefined) throw new CriError('RUNTIME_UNSUPPORTED', `${method} is not defined`)
    return definition
  }
}

/** How many items are decoded at once: in podd, which runs without V8's optimizing compilers, that takes a millisecond. */
const maxItems = 32

/** Decodes a message that is one list. Any run of its items is such a message too. Throws where the bytes are none. */
async function decodeList<Reply>(
  bytes: Buffer,
  decode: (bytes: Buffer) => Reply,
  pace: TurnPace,
): Promise<Reply> {
  const reader = protobuf.Reader.create(bytes)
  const nextRun = (): Buffer => {
    const from = reader.pos
    for (let items = 0; items < maxItems && reader.pos < reader.len; items += 1)
      reader.skipType(reader.uint32() & 7)
    return bytes.subarray(from, reader.pos)
  }
  const reply = decode(nextRun())
  const lists = new Map<string, unknown>(Object.entries(reply ?? {}))
  while (reader.pos < reader.len) {
    if (pace.isOver) await pace.next()
    for (const [field, items] of Object.entries<unknown>(decode(nextRun()) ?? {})) {
      const list = lists.get(field)
      if (Array.isArray(list) && Array.isArray(items)) list.push(...items)
    }
  }
  return reply
}

function timeoutError(method: string, deadlineMs: number): CriError {
  return new CriError('RUNTIME_TIMEOUT', `${method}: no answer within ${deadlineMs / 1000} s`, { method })
}

/**
 * A second connection to the runtime, for calls that the runtime is not to cancel when podd is killed. It counts as
 * connected while the first one is: what is known of the runtime is known of that.
 */
export class KeptChannel implements CallChannel {
  readonly #main: RuntimeConnection
  readonly #kept: RuntimeConnection

  constructor(main: RuntimeConnection, kept: RuntimeConnection) {
    this.#main = main
    this.#kept = kept
  }

  get isReady(): boolean {
    return this.#main.isReady && this.#kept.isReady
  }

  async ready(signal?: AbortSignal): Promise<void> {
    await this.#main.ready(signal)
    await this.#kept.ready(signal)
  }

  unary<Request, Reply>(
    method: WireMethod<Request, Reply>,
    request: Request,
    signal: AbortSignal,
  ): Promise<Reply> {
    return this.#kept.unary(method, request, signal)
  }

  suspect(): void {
    this.#kept.suspect()
  }
}
