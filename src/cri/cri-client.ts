import type { Clock } from '../base/clock.ts'
import type * as cri from '../cri-types/cri-v1.ts'
import { RuntimeCaller } from './call-runtime.ts'
import type { CallGate, CallObserver } from './call-runtime.ts'
import { apiVersionProblem } from './check-reply.ts'
import { CriError, isCriError, mayBeStarting } from './cri-error.ts'
import type { ImageService, RuntimeService } from './cri-runtime.ts'
import { createImageService } from './image-service.ts'
import { KeptChannel } from './kept-channel.ts'
import type { KeepSocket } from '../grpc/grpc-channel.ts'
import { loadProto } from '../grpc/load-proto.ts'
import type { LoadedProto } from '../grpc/load-proto.ts'
import { RuntimeConnection } from './runtime-connection.ts'
import { createRuntimeService } from './runtime-service.ts'

export interface CriClientOptions {
  /** `unix:///run/containerd/containerd.sock` */
  readonly endpoint: string
  /** Where ImageService is served, if not on the same endpoint. */
  readonly imageEndpoint?: string | undefined
  readonly clock: Clock
  /** How long calls wait for a runtime that has just become unavailable before they fail; by default 5 s. */
  readonly reconnectWaitMs?: number | undefined
  readonly onCall?: CallObserver | undefined
  /**
   * Keeps a connection open when podd is killed: StartContainer has one of its own then, which is opened when the first
   * container is created. Without it, the runtime cancels a start when podd is killed.
   */
  readonly keep?: KeepSocket | undefined
}

/** The name of an RPC, as RuntimeService and ImageService have it. */
export type CriMethod = keyof RuntimeService | keyof ImageService

/** The CRI's version before v1, which containerd served up to 1.5. */
const olderVersionPath = '/runtime.v1alpha2.RuntimeService/Version'

/** The deadline of the question whether the runtime is up; it answers at once or not at all. */
const startingDeadlineMs = 2000

interface KeptCalls {
  readonly connection: RuntimeConnection
  readonly caller: RuntimeCaller
}

/** The service with its StartContainer sent over another connection. */
function keepStarts(service: RuntimeService, { connection, caller }: KeptCalls): RuntimeService {
  const { startContainer } = createRuntimeService(caller.bind)
  return {
    ...service,
    startContainer,
    createContainer: (request, options) => {
      const made = service.createContainer(request, options)
      // Its start follows at once.
      void connection.ready()
      return made
    },
  }
}

/** podd's side of the CRI: both services over a unix socket. Nothing is sent before the first call. */
export class CriClient {
  readonly runtime: RuntimeService
  readonly images: ImageService
  /** The channel to the runtime, for other services on the same socket. */
  readonly connection: RuntimeConnection
  /** What cri-v1.proto defines. */
  readonly proto: LoadedProto
  readonly #imageConnection: RuntimeConnection
  readonly #runtimeCaller: RuntimeCaller
  readonly #imageCaller: RuntimeCaller
  readonly #kept: KeptCalls | undefined

  /** Throws CriError RUNTIME_ENDPOINT for an endpoint that is not `unix://`. */
  constructor(options: CriClientOptions) {
    const { endpoint, imageEndpoint = endpoint, clock, reconnectWaitMs = 5000, onCall, keep } = options
    this.proto = loadProto('cri-v1.proto')
    this.connection = new RuntimeConnection({ endpoint, clock, reconnectWaitMs })
    this.#imageConnection =
      imageEndpoint === endpoint
        ? this.connection
        : new RuntimeConnection({ endpoint: imageEndpoint, clock, reconnectWaitMs })
    this.#runtimeCaller = new RuntimeCaller({
      connection: this.connection,
      service: this.proto.service('runtime.v1.RuntimeService'),
      clock,
      onCall,
    })
    this.#imageCaller = new RuntimeCaller({
      connection: this.#imageConnection,
      service: this.proto.service('runtime.v1.ImageService'),
      clock,
      onCall,
    })
    if (keep === undefined) {
      this.runtime = createRuntimeService(this.#runtimeCaller.bind)
    } else {
      const kept = new RuntimeConnection({ endpoint, clock, reconnectWaitMs, keep })
      this.#kept = {
        connection: kept,
        caller: new RuntimeCaller({
          connection: new KeptChannel(this.connection, kept),
          service: this.proto.service('runtime.v1.RuntimeService'),
          clock,
          onCall,
        }),
      }
      this.runtime = keepStarts(createRuntimeService(this.#runtimeCaller.bind), this.#kept)
    }
    this.images = createImageService(this.#imageCaller.bind)
    this.connection.probeWith(() => this.#isStarting())
  }

  /**
   * Checks that a runtime answers and speaks CRI v1, and returns its version. Throws CriError RUNTIME_UNAVAILABLE, or
   * RUNTIME_API_VERSION for a runtime with an older CRI, another one or none.
   */
  async connect(signal?: AbortSignal): Promise<cri.VersionResponse> {
    try {
      const version = await this.runtime.version({}, { signal })
      const problem = apiVersionProblem(version)
      if (problem === undefined) return version
      throw new CriError(
        'RUNTIME_API_VERSION',
        `the runtime at ${this.connection.endpoint} can't be used: ${problem}`,
      )
    } catch (error) {
      if (!isCriError(error, 'RUNTIME_UNSUPPORTED')) throw error
      throw await this.#versionError(error)
    }
  }

  /** Sets the gate for calls about sandboxes and containers; calls about the runtime and images are always sent. */
  gateWith(gate: CallGate): void {
    this.#runtimeCaller.gateWith(gate)
    this.#kept?.caller.gateWith(gate)
  }

  /**
   * Whether this runtime has an RPC: false once it answered UNIMPLEMENTED, true once it answered otherwise, undefined
   * before the first answer since it was (re)connected.
   */
  supports(method: CriMethod): boolean | undefined {
    const name = `${method.charAt(0).toUpperCase()}${method.slice(1)}`
    return this.#runtimeCaller.supports(name) ?? this.#imageCaller.supports(name)
  }

  /** Ends all calls in flight with RUNTIME_UNAVAILABLE or RUNTIME_FAILED. */
  close(): void {
    this.connection.close()
    this.#kept?.connection.close()
    if (this.#imageConnection !== this.connection) this.#imageConnection.close()
  }

  async #isStarting(): Promise<boolean> {
    try {
      await this.#runtimeCaller.ask('Status', {}, startingDeadlineMs)
      return false
    } catch (error) {
      return mayBeStarting(error)
    }
  }

  /** Why the runtime has no CRI v1: it has an older one, or none. */
  async #versionError(cause: CriError): Promise<CriError> {
    const where = `the runtime at ${this.connection.endpoint}`
    try {
      await this.#runtimeCaller.ask('Version', {}, startingDeadlineMs, olderVersionPath)
    } catch {
      // It has no older CRI either; `cause` is the first failure.
      return new CriError('RUNTIME_API_VERSION', `${where} serves no CRI`, {
        cause,
        hint: "Enable its CRI plugin: take 'cri' out of disabled_plugins in /etc/containerd/config.toml.",
      })
    }
    return new CriError('RUNTIME_API_VERSION', `${where} speaks only CRI v1alpha2, and podd needs v1`, {
      cause,
      hint: 'Install containerd 1.6 or newer.',
    })
  }
}
