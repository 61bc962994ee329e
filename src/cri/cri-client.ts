import type { Clock } from '../base/clock.ts'
import type * as cri from '../cri-types/cri-v1.ts'
import { RuntimeCaller } from './call-runtime.ts'
import type { CallGate, CallObserver } from './call-runtime.ts'
import { CriError, isCriError, mayBeStarting } from './cri-error.ts'
import type { ImageService, RuntimeService } from './cri-runtime.ts'
import { createImageService } from './image-service.ts'
import { loadProto } from './load-proto.ts'
import type { LoadedProto } from './load-proto.ts'
import { RuntimeConnection } from './runtime-connection.ts'
import { createRuntimeService } from './runtime-service.ts'

export interface CriClientOptions {
  /** `unix:///run/containerd/containerd.sock` */
  readonly endpoint: string
  /** Where ImageService is served, if not on the same endpoint. */
  readonly imageEndpoint?: string | undefined
  readonly clock: Clock
  /** How long calls wait for a runtime that just went away before they fail; 5 s unless told. */
  readonly reconnectWaitMs?: number | undefined
  readonly onCall?: CallObserver | undefined
}

/** The name of an RPC, as RuntimeService and ImageService have it. */
export type CriMethod = keyof RuntimeService | keyof ImageService

/** What was the CRI before v1; containerd spoke it up to 1.5. */
const olderVersionPath = '/runtime.v1alpha2.RuntimeService/Version'

/** How long a runtime may take to say whether it is up; it answers at once or not at all. */
const startingDeadlineMs = 2000

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

  /** Throws CriError RUNTIME_ENDPOINT for an endpoint that is not `unix://`. */
  constructor(options: CriClientOptions) {
    const { endpoint, imageEndpoint = endpoint, clock, reconnectWaitMs = 5000, onCall } = options
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
    this.runtime = createRuntimeService(this.#runtimeCaller.bind)
    this.images = createImageService(this.#imageCaller.bind)
    this.connection.probeWith(() => this.#isStarting())
  }

  /**
   * Makes sure that a runtime answers and speaks CRI v1, and says which it is.
   * Throws CriError RUNTIME_UNAVAILABLE, or RUNTIME_API_VERSION for a runtime with an older CRI or none.
   */
  async connect(signal?: AbortSignal): Promise<cri.VersionResponse> {
    try {
      return await this.runtime.version({}, { signal })
    } catch (error) {
      if (!isCriError(error, 'RUNTIME_UNSUPPORTED')) throw error
      throw await this.#versionError(error)
    }
  }

  /** Sets what holds calls about sandboxes and containers back; those about the runtime and images go out all the same. */
  gateWith(gate: CallGate): void {
    this.#runtimeCaller.gateWith(gate)
  }

  /**
   * Whether this runtime has an RPC: false once it answered UNIMPLEMENTED, true once it answered otherwise,
   * undefined while it hasn't been asked since it was last (re)connected.
   */
  supports(method: CriMethod): boolean | undefined {
    const name = `${method.charAt(0).toUpperCase()}${method.slice(1)}`
    return this.#runtimeCaller.supports(name) ?? this.#imageCaller.supports(name)
  }

  /** Ends all calls in flight with RUNTIME_UNAVAILABLE or RUNTIME_FAILED. */
  close(): void {
    this.connection.close()
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
      // Whatever the answer was, it is no older CRI; `cause` is the first failure.
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
