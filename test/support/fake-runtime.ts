import { status } from '@grpc/grpc-js'
import type { Clock } from '../../src/base/clock.ts'
import { RuntimeCaller } from '../../src/runtime/call-runtime.ts'
import type { CallChannel } from '../../src/runtime/call-runtime.ts'
import { criErrorFrom } from '../../src/runtime/cri-runtime.ts'
import type { ImageService, RuntimeService } from '../../src/runtime/cri-runtime.ts'
import type { ContainerdEvents } from '../../src/runtime/events.ts'
import { createImageService, createRuntimeService } from '../../src/runtime/cri-client.ts'
import { loadProto } from '../../src/grpc/load-proto.ts'
import type { LoadedProto } from '../../src/grpc/load-proto.ts'
import type { WireMethod } from '../../src/grpc/load-proto.ts'
import type { RuntimeEvent } from '../../src/pod/state/observed.ts'
import { fakeHandlers } from './fake-runtime-handlers.ts'
import type { FakeExec, FakeHandler, FakeRuntimeSettings } from './fake-runtime-handlers.ts'
import { FakeRuntimeError, FakeRuntimeWorld, fullImageName, makeImage } from './fake-runtime-world.ts'
import type {
  ContainerScript,
  FakeContainer,
  FakeImage,
  FakeImageOptions,
  FakeSandbox,
} from './fake-runtime-world.ts'

export type RpcName = Capitalize<Extract<keyof RuntimeService | keyof ImageService, string>>

/** One call that reached the runtime, in the order of arrival. */
export interface JournalEntry {
  readonly method: RpcName
  // Tests read what they know to be there.
  // eslint-disable-next-line typescript/no-explicit-any
  readonly request: any
  /** On the monotonic clock. */
  readonly atMs: number
  /** When it was answered; undefined while it is under way. */
  endedAtMs: number | undefined
  outcome: 'pending' | 'ok' | 'failed'
  /** The caller took it back before it was answered. */
  cancelled: boolean
}

/** What goes wrong with a call. */
export type Fault =
  /** Nothing is done, and the runtime says so; UNKNOWN unless told. */
  | { readonly kind: 'fails'; readonly grpcCode?: number; readonly message?: string }
  /** It is done late. */
  | { readonly kind: 'delays'; readonly delayMs: number }
  /** Nothing is done and nothing said, until the caller cancels. */
  | { readonly kind: 'hangs' }
  /** It is done, but the connection breaks before the answer. */
  | { readonly kind: 'loses-reply' }
  /** Nothing is done, and the runtime says that it is. */
  | { readonly kind: 'pretends'; readonly reply: object }

interface ArmedFault {
  readonly fault: Fault
  // eslint-disable-next-line typescript/no-explicit-any
  readonly when: (request: any) => boolean
  times: number
}

export type ContainerdRelease = '1.6' | '1.7' | '2.1'

const versions: Record<ContainerdRelease, string> = { '1.6': '1.6.20', '1.7': '1.7.24', '2.1': '2.1.9' }

const neverServed = ['ListMetricDescriptors', 'ListPodSandboxMetrics']
const unsupported: Record<ContainerdRelease, readonly string[]> = {
  '1.6': [...neverServed, 'CheckpointContainer', 'RuntimeConfig'],
  '1.7': [...neverServed, 'CheckpointContainer', 'RuntimeConfig'],
  '2.1': neverServed,
}

export interface FakeRuntimeOptions {
  readonly clock: Clock
  readonly release?: ContainerdRelease
  /** Images that are there from the start. */
  readonly images?: readonly string[]
}

let loaded: LoadedProto | undefined

/**
 * A CRI runtime in memory that behaves as containerd does. Tests use its services directly (with the same
 * deadlines, checks and errors as the real client's), or serve it on a socket (serveFakeRuntime). What
 * its containers do, and what goes wrong, tests say beforehand; all its time is the given clock's.
 */
export class FakeRuntime {
  readonly runtime: RuntimeService
  readonly images: ImageService
  /** Hints as containerd gives them; every `run` opens at once. */
  readonly events: Pick<ContainerdEvents, 'run'>
  readonly journal: JournalEntry[] = []
  readonly world: FakeRuntimeWorld
  readonly settings: FakeRuntimeSettings
  readonly proto: LoadedProto
  /** RPCs that answer UNIMPLEMENTED. */
  readonly unsupported: Set<string>
  /** When set, events happen but nobody is told: as when a stream is dead and nobody noticed. */
  eventsMuted = false
  readonly #clock: Clock
  readonly #handlers: Record<string, FakeHandler>
  readonly #faults = new Map<string, ArmedFault[]>()
  readonly #scripts = new Map<string, ContainerScript | ((container: FakeContainer) => ContainerScript)>()
  readonly #listeners = new Set<(event: RuntimeEvent) => void>()
  #connection = new AbortController()
  #down = false

  constructor(options: FakeRuntimeOptions) {
    const { clock, release = '2.1', images = [] } = options
    this.#clock = clock
    this.proto = loaded ??= loadProto('cri-v1.proto')
    this.unsupported = new Set(unsupported[release])
    this.world = new FakeRuntimeWorld(clock, (event) => this.#tell(event))
    this.settings = {
      version: versions[release],
      clock,
      cni: 'works',
      networkReady: true,
      runtimeReady: true,
      apiVersion: '0.1.0',
      registry: new Map(),
      imageFsUsedBytes: 0,
      cpuNanoCores: 1_000_000,
      memoryBytes: 1_000_000,
      script: (container) => this.#script(container),
      exec: () => ({}),
    }
    this.#handlers = fakeHandlers(this.world, this.settings)
    for (const image of images) this.addImage(image)
    this.runtime = createRuntimeService(this.#caller('runtime.v1.RuntimeService').bind)
    this.images = createImageService(this.#caller('runtime.v1.ImageService').bind)
    this.events = { run: (onEvent, signal) => this.#runEvents(onEvent, signal) }
  }

  /** What containers of this name do from their next start on; they run until stopped unless told. */
  script(name: string, script: ContainerScript | ((container: FakeContainer) => ContainerScript)): void {
    this.#scripts.set(name, script)
  }

  /** What commands in containers do: succeed at once and silently, unless told. */
  onExec(exec: (container: FakeContainer, command: readonly string[]) => FakeExec): void {
    this.settings.exec = exec
  }

  /** Makes the next `times` calls of an RPC go wrong (those for which `when` holds). */
  fault(
    method: RpcName,
    fault: Fault,
    // eslint-disable-next-line typescript/no-explicit-any
    { times = 1, when = () => true }: { times?: number; when?: (request: any) => boolean } = {},
  ): void {
    const armed = this.#faults.get(method) ?? []
    this.#faults.set(method, [...armed, { fault, when, times }])
  }

  clearFaults(): void {
    this.#faults.clear()
  }

  addImage(name: string, options: FakeImageOptions = {}): FakeImage {
    const image = makeImage(name, options)
    this.world.images.set(image.id, image)
    return image
  }

  /** Puts an image where PullImage finds it. */
  addRemoteImage(name: string, options: FakeImageOptions = {}): void {
    this.settings.registry.set(fullImageName(name), makeImage(name, options))
  }

  /** The containers of this name, oldest first. */
  containersNamed(name: string): FakeContainer[] {
    return [...this.world.containers.values()].filter(({ config }) => config.metadata?.name === name)
  }

  /** The newest container of this name; throws if there is none. */
  container(name: string): FakeContainer {
    const container = this.containersNamed(name).at(-1)
    if (container === undefined) throw new Error(`the fake runtime has no container ${name}`)
    return container
  }

  /** The sandboxes of the pod with this name, oldest first. */
  sandboxesOf(podName: string): FakeSandbox[] {
    return [...this.world.sandboxes.values()].filter(({ config }) => config.metadata?.name === podName)
  }

  /** Ends a container by itself, as a crash or the out-of-memory killer (`OOMKilled`) would. */
  exitContainer(name: string, exitCode: number, reason?: string): void {
    this.world.exit(this.container(name), exitCode, reason)
  }

  /** Ends a sandbox behind podd's back. */
  endSandbox(podName: string): void {
    const sandbox = this.sandboxesOf(podName).at(-1)
    if (sandbox === undefined) throw new Error(`the fake runtime has no sandbox of ${podName}`)
    this.world.endSandbox(sandbox)
  }

  /** The runtime goes away: calls under way break, later ones find nobody. Pods live on. */
  goDown(): void {
    this.#down = true
    this.#connection.abort()
    this.#sendAll({ kind: 'lost', reason: 'Connection dropped' })
  }

  /** @param events without them, its event stream stays broken */
  comeUp({ events = true }: { readonly events?: boolean } = {}): void {
    this.#down = false
    this.#connection = new AbortController()
    if (events) this.#sendAll({ kind: 'opened' })
  }

  /** The names of the RPCs so far, without those that only read. */
  changes(): RpcName[] {
    return this.journal
      .map(({ method }) => method)
      .filter((method) => /^(Run|Stop|Remove|Create|Start|Update|Pull|ExecSync)/.test(method))
  }

  calls(method: RpcName): JournalEntry[] {
    return this.journal.filter((entry) => entry.method === method)
  }

  /** Listens to what happens without the opening and losing of a stream. */
  listen(onEvent: (event: RuntimeEvent) => void): () => void {
    this.#listeners.add(onEvent)
    return () => void this.#listeners.delete(onEvent)
  }

  /** Answers one call; both the local services and the socket end here. Throws FakeRuntimeError. */
  async answer(method: string, request: object, signal: AbortSignal): Promise<object> {
    if (this.#down) throw new FakeRuntimeError(status.UNAVAILABLE, 'No connection established')
    const entry: JournalEntry = {
      method: method as RpcName,
      request,
      atMs: this.#clock.monotonicMs(),
      endedAtMs: undefined,
      outcome: 'pending',
      cancelled: false,
    }
    this.journal.push(entry)
    signal.addEventListener('abort', () => (entry.cancelled = entry.outcome === 'pending'))
    try {
      const reply = await this.#orBroken(this.#answer(method, request, signal))
      entry.outcome = 'ok'
      return reply
    } catch (error) {
      entry.outcome = 'failed'
      throw error
    } finally {
      entry.endedAtMs = this.#clock.monotonicMs()
    }
  }

  async #answer(method: string, request: object, signal: AbortSignal): Promise<object> {
    const handler = this.#handlers[method]
    if (handler === undefined || this.unsupported.has(method)) {
      throw new FakeRuntimeError(status.UNIMPLEMENTED, `method ${method} not implemented`)
    }
    const fault = this.#takeFault(method, request)
    if (fault?.kind === 'fails') {
      throw new FakeRuntimeError(
        fault.grpcCode ?? status.UNKNOWN,
        fault.message ?? `${method} was made to fail`,
      )
    }
    if (fault?.kind === 'hangs') {
      if (method === 'StartContainer' && 'containerId' in request) {
        const container = this.world.containers.get(String(request.containerId))
        if (container !== undefined) container.starting = true
      }
      await new Promise(() => {})
    }
    if (fault?.kind === 'pretends') return fault.reply
    if (fault?.kind === 'delays') await this.#clock.sleep(fault.delayMs)
    const reply = await handler(request as never, signal)
    if (fault?.kind === 'loses-reply') throw new FakeRuntimeError(status.UNAVAILABLE, 'Connection dropped')
    return reply
  }

  /** What is under way when the runtime goes down breaks for the caller, though the work goes on. */
  #orBroken<T>(work: Promise<T>): Promise<T> {
    const { signal } = this.#connection
    return new Promise((resolve, reject) => {
      const onAbort = (): void => reject(new FakeRuntimeError(status.UNAVAILABLE, 'Connection dropped'))
      signal.addEventListener('abort', onAbort, { once: true })
      work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
    })
  }

  #takeFault(method: string, request: object): Fault | undefined {
    const armed = (this.#faults.get(method) ?? []).find(({ times, when }) => times > 0 && when(request))
    if (armed === undefined) return undefined
    armed.times -= 1
    return armed.fault
  }

  #script(container: FakeContainer): ContainerScript {
    const script = this.#scripts.get(container.config.metadata?.name ?? '') ?? { kind: 'runs' }
    return typeof script === 'function' ? script(container) : script
  }

  #tell(event: RuntimeEvent): void {
    if (!this.eventsMuted && !this.#down) this.#sendAll(event)
  }

  #sendAll(event: RuntimeEvent): void {
    for (const listener of this.#listeners) listener(event)
  }

  #runEvents(onEvent: (event: RuntimeEvent) => void, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const stop = this.listen(onEvent)
      signal.addEventListener('abort', () => {
        stop()
        resolve()
      })
      onEvent(this.#down ? { kind: 'lost', reason: 'No connection established' } : { kind: 'opened' })
    })
  }

  #caller(service: string): RuntimeCaller {
    const channel: CallChannel = {
      ready: () => Promise.resolve(),
      isReady: true,
      suspect: () => undefined,
      unary: (method, request, signal) => this.#unary(service, method, request, signal),
    }
    return new RuntimeCaller(channel, this.proto.service(service), this.#clock)
  }

  /** A call without a socket, but through the wire format: requests and replies have exactly the shapes of real ones. */
  #unary<Request, Reply>(
    service: string,
    wire: WireMethod<Request, Reply>,
    request: Request,
    signal: AbortSignal,
  ): Promise<Reply> {
    const method = wire.path.slice(wire.path.lastIndexOf('/') + 1)
    const definition = this.proto.service(service)[method]!
    const received = definition.requestDeserialize(wire.requestSerialize(request)) as object
    return new Promise((resolve, reject) => {
      const onAbort = (): void => reject(signal.reason)
      signal.addEventListener('abort', onAbort, { once: true })
      this.answer(method, received, signal)
        .then((reply) => resolve(wire.responseDeserialize(definition.responseSerialize(reply))))
        .catch((error: unknown) => reject(asCriError(error, method)))
        .finally(() => signal.removeEventListener('abort', onAbort))
    })
  }
}

function asCriError(error: unknown, method: string): unknown {
  if (!(error instanceof FakeRuntimeError)) return error
  return criErrorFrom({ code: error.grpcCode, details: error.message, isAnswer: false }, method)
}
