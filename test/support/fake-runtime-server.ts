import { rmSync } from 'node:fs'
import { Metadata, Server, ServerCredentials, status } from '@grpc/grpc-js'
import type {
  sendUnaryData,
  ServerUnaryCall,
  ServerWritableStream,
  UntypedServiceImplementation,
} from '@grpc/grpc-js'
import { loadProto } from '../../src/grpc/load-proto.ts'
import type { RuntimeEvent } from '../../src/pod/state/observed.ts'
import type { FakeRuntime } from './fake-runtime.ts'
import { FakeRuntimeError } from './fake-runtime-world.ts'

export interface FakeRuntimeServerOptions {
  readonly socketPath: string
  /** Whether containerd's own events are served beside CRI; yes unless told. */
  readonly nativeEvents?: boolean
  /** Which CRI services are served; both unless told. */
  readonly services?: readonly ('RuntimeService' | 'ImageService')[]
  /** Instead of `runtime.v1`, as an older runtime would. */
  readonly packageName?: string
}

type Message = Record<string, unknown>

const nativeTopics = {
  created: '/containers/create',
  started: '/tasks/start',
  exited: '/tasks/exit',
  oom: '/tasks/oom',
  deleted: '/containers/delete',
} as const

/** A fake runtime on a unix socket, over gRPC as containerd's. */
export class FakeRuntimeServer {
  readonly endpoint: string
  readonly #fake: FakeRuntime
  readonly #options: FakeRuntimeServerOptions
  readonly #envelopeListeners = new Set<(envelope: Message) => void>()
  #server: Server | undefined

  private constructor(fake: FakeRuntime, options: FakeRuntimeServerOptions) {
    this.#fake = fake
    this.#options = options
    this.endpoint = `unix://${options.socketPath}`
  }

  static async start(fake: FakeRuntime, options: FakeRuntimeServerOptions): Promise<FakeRuntimeServer> {
    const server = new FakeRuntimeServer(fake, options)
    await server.start()
    return server
  }

  /** Starts to listen again after `stop`. */
  async start(): Promise<void> {
    const server = new Server({ 'grpc.max_receive_message_length': 16 * 1024 * 1024 })
    for (const name of this.#options.services ?? ['RuntimeService', 'ImageService'])
      this.#addService(server, name)
    if (this.#options.nativeEvents ?? true) this.#addNativeEvents(server)
    await new Promise<void>((resolve, reject) => {
      server.bindAsync(`unix:${this.#options.socketPath}`, ServerCredentials.createInsecure(), (error) =>
        error === null ? resolve() : reject(error),
      )
    })
    this.#server = server
  }

  /** Drops all connections and the socket, as a runtime that was killed. */
  stop(): void {
    this.#server?.forceShutdown()
    this.#server = undefined
    rmSync(this.#options.socketPath, { force: true })
  }

  /** Sends an event of containerd's own, with the container's id as its payload's first field. */
  sendNative(topic: string, payload: Buffer): void {
    const envelope = { namespace: 'k8s.io', topic, event: { typeUrl: topic, value: payload } }
    for (const listener of this.#envelopeListeners) listener(envelope)
  }

  #addService(server: Server, name: 'RuntimeService' | 'ImageService'): void {
    const { packageName = 'runtime.v1' } = this.#options
    const definition = this.#fake.proto.service(`runtime.v1.${name}`)
    const entries = Object.entries(definition).map(
      ([method, wire]) => [method, { ...wire, path: `/${packageName}.${name}/${method}` }] as const,
    )
    const handlers = entries.map(([method]) => [method, this.#unary(method)])
    server.addService(
      Object.fromEntries(entries),
      Object.fromEntries(handlers) as UntypedServiceImplementation,
    )
  }

  #unary(method: string) {
    return (call: ServerUnaryCall<object, object>, reply: sendUnaryData<object>): void => {
      const cancelled = new AbortController()
      call.on('cancelled', () => cancelled.abort(new Error('cancelled')))
      this.#fake.answer(method, call.request, cancelled.signal).then(
        (message) => reply(null, message),
        (error: unknown) => reply(grpcError(error)),
      )
    }
  }

  #addNativeEvents(server: Server): void {
    server.addService(loadProto('containerd-events.proto').service('containerd.services.events.v1.Events'), {
      Publish: (call: ServerUnaryCall<Message, object>, reply: sendUnaryData<object>) => {
        if (call.metadata.get('containerd-namespace').length === 0) {
          reply({ code: status.FAILED_PRECONDITION, details: 'namespace is required' })
          return
        }
        for (const listener of this.#envelopeListeners) listener({ namespace: 'k8s.io', ...call.request })
        reply(null, {})
      },
      Subscribe: (call: ServerWritableStream<Message, object>) => {
        const topics = (call.request['filters'] as string[]).map(
          (filter) => /topic=="([^"]+)"/.exec(filter)?.[1],
        )
        const send = (envelope: Message): void => {
          if (topics.includes(String(envelope['topic']))) call.write(envelope)
        }
        this.#envelopeListeners.add(send)
        const stop = this.#fake.listen((event) => this.#sendFact(event, send))
        call.on('cancelled', () => {
          stop()
          this.#envelopeListeners.delete(send)
        })
      },
    })
  }

  #sendFact(event: RuntimeEvent, send: (envelope: Message) => void): void {
    if (!('containerId' in event)) return
    const topic = nativeTopics[event.kind]
    const id = Buffer.from(event.containerId)
    const field = (number: number): Buffer => Buffer.concat([Buffer.from([(number << 3) | 2, id.length]), id])
    const value = event.kind === 'exited' ? Buffer.concat([field(1), field(2)]) : field(1)
    send({ namespace: 'k8s.io', topic, event: { typeUrl: topic, value } })
  }
}

function grpcError(error: unknown): { code: number; details: string; metadata: Metadata } {
  const metadata = new Metadata()
  if (error instanceof FakeRuntimeError) return { code: error.grpcCode, details: error.message, metadata }
  return { code: status.UNKNOWN, details: String(error), metadata }
}
