import type { Clock } from '../base/clock.ts'
import { parseJson, jsonAt } from '../base/json.ts'
import type * as cri from '../cri-types/cri-v1.ts'
import type { KeepSocket } from '../grpc/grpc-channel.ts'
import { loadProto } from '../grpc/load-proto.ts'
import type { CgroupDriver } from '../host/cgroups/layout.ts'
import { KeptChannel, RuntimeCaller } from './call-runtime.ts'
import type { BindRpc, CallGate, CallObserver } from './call-runtime.ts'
import { RuntimeConnection } from './connection.ts'
import { CriError, isCriError, mayBeStarting } from './cri-runtime.ts'
import type { ImageService, RuntimeService } from './cri-runtime.ts'

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
  readonly #imageConnection: RuntimeConnection
  readonly #runtimeCaller: RuntimeCaller
  readonly #imageCaller: RuntimeCaller
  readonly #kept: KeptCalls | undefined

  /** Throws CriError RUNTIME_ENDPOINT for an endpoint that is not `unix://`. */
  constructor(options: CriClientOptions) {
    const { endpoint, imageEndpoint = endpoint, clock, reconnectWaitMs = 5000, onCall, keep } = options
    const proto = loadProto('cri-v1.proto')
    const runtime = proto.service('runtime.v1.RuntimeService')
    const images = proto.service('runtime.v1.ImageService')
    this.connection = new RuntimeConnection(endpoint, clock, reconnectWaitMs)
    this.#imageConnection =
      imageEndpoint === endpoint
        ? this.connection
        : new RuntimeConnection(imageEndpoint, clock, reconnectWaitMs)
    this.#runtimeCaller = new RuntimeCaller(this.connection, runtime, clock, onCall)
    this.#imageCaller = new RuntimeCaller(this.#imageConnection, images, clock, onCall)
    const service = createRuntimeService(this.#runtimeCaller.bind)
    if (keep === undefined) this.runtime = service
    else {
      const connection = new RuntimeConnection(endpoint, clock, reconnectWaitMs, keep)
      const channel = new KeptChannel(this.connection, connection)
      this.#kept = { connection, caller: new RuntimeCaller(channel, runtime, clock, onCall) }
      this.runtime = keepStarts(service, this.#kept)
    }
    this.images = createImageService(this.#imageCaller.bind)
    this.connection.probeWith(() => this.#isStarting())
  }

  /**
   * Checks that a runtime answers and speaks CRI v1, and returns its version. Throws CriError RUNTIME_UNAVAILABLE, or
   * RUNTIME_API_VERSION for a runtime with an older CRI, another one or none.
   */
  async connect(signal?: AbortSignal): Promise<cri.VersionResponse> {
    const where = `the runtime at ${this.connection.endpoint}`
    const version = await this.runtime.version({}, { signal }).catch((error: unknown) => {
      if (!isCriError(error, 'RUNTIME_UNSUPPORTED')) throw error
      throw new CriError('RUNTIME_API_VERSION', `${where} serves no CRI v1`, {
        cause: error,
        hint: "Have containerd 1.6 or newer, and its CRI plugin on: take 'cri' out of disabled_plugins in /etc/containerd/config.toml.",
      })
    })
    const problem = apiVersionProblem(version)
    if (problem === undefined) return version
    throw new CriError('RUNTIME_API_VERSION', `${where} can't be used: ${problem}`)
  }

  /** Sets the gate for calls about sandboxes and containers; calls about the runtime and images are always sent. */
  gateWith(gate: CallGate): void {
    this.#runtimeCaller.gateWith(gate)
    this.#kept?.caller.gateWith(gate)
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
}

/** The kubelet's `runtimeRequestTimeout`. */
export const callDeadlineMs = 120_000

/**
 * How much longer than its own timeout an ExecSync may take. The runtime ends it, but containerd 1.6 waits for as long
 * as any process holds the command's output.
 */
const execSlackMs = 2000

const usual = (): number => callDeadlineMs
const unbounded = (): undefined => undefined

const read = { kind: 'read', deadlineMs: usual } as const
const unboundedRead = { kind: 'read', deadlineMs: unbounded } as const
const change = { kind: 'change', deadlineMs: usual } as const
/** A call about the runtime itself. */
const ofRuntime = { isUngated: true } as const
/** A call that ends something: it succeeds where that doesn't exist. */
const end = { ...change, whenAbsent: {} } as const

/** RuntimeService: what each RPC is bounded by and what its reply must carry. */
export function createRuntimeService(rpc: BindRpc): RuntimeService {
  return {
    version: rpc('Version', { ...read, ...ofRuntime, check: checkVersion }),
    status: rpc('Status', { ...read, ...ofRuntime, check: checkStatus }),
    runtimeConfig: rpc('RuntimeConfig', { ...read, ...ofRuntime }),
    updateRuntimeConfig: rpc('UpdateRuntimeConfig', { ...change, ...ofRuntime }),

    // Starting a sandbox may pull its image and waits for network plugins: twice the time, as in the kubelet.
    runPodSandbox: rpc('RunPodSandbox', {
      kind: 'change',
      deadlineMs: () => callDeadlineMs * 2,
      check: checkSandboxId,
    }),
    stopPodSandbox: rpc('StopPodSandbox', end),
    removePodSandbox: rpc('RemovePodSandbox', end),
    podSandboxStatus: rpc('PodSandboxStatus', { ...read, check: checkSandboxStatus }),
    listPodSandbox: rpc('ListPodSandbox', { ...read, isList: true }),

    createContainer: rpc('CreateContainer', { ...change, check: checkContainerId }),
    startContainer: rpc('StartContainer', change),
    stopContainer: rpc('StopContainer', {
      ...end,
      deadlineMs: ({ timeout = 0 }) => timeout * 1000 + callDeadlineMs,
    }),
    removeContainer: rpc('RemoveContainer', end),
    containerStatus: rpc('ContainerStatus', { ...read, check: checkContainerStatus }),
    listContainers: rpc('ListContainers', { ...read, isList: true }),
    updateContainerResources: rpc('UpdateContainerResources', change),
    reopenContainerLog: rpc('ReopenContainerLog', change),

    // The caller's timeout, and never less than the usual deadline.
    checkpointContainer: rpc('CheckpointContainer', {
      kind: 'change',
      deadlineMs: ({ timeout = 0 }) => Math.max(timeout * 1000, callDeadlineMs),
    }),

    // No timeout is no deadline, as in the kubelet: the caller's signal ends it.
    execSync: rpc('ExecSync', {
      kind: 'work',
      deadlineMs: ({ timeout = 0 }) => (timeout === 0 ? undefined : timeout * 1000 + execSlackMs),
    }),
    exec: rpc('Exec', { ...read, check: checkStreamingUrl }),
    attach: rpc('Attach', { ...read, check: checkStreamingUrl }),
    portForward: rpc('PortForward', { ...read, check: checkStreamingUrl }),

    containerStats: rpc('ContainerStats', read),
    listContainerStats: rpc('ListContainerStats', unboundedRead),
    podSandboxStats: rpc('PodSandboxStats', read),
    listPodSandboxStats: rpc('ListPodSandboxStats', read),
    listMetricDescriptors: rpc('ListMetricDescriptors', read),
    listPodSandboxMetrics: rpc('ListPodSandboxMetrics', read),
  }
}

/** ImageService: what each RPC is bounded by and what its reply must carry. */
export function createImageService(rpc: BindRpc): ImageService {
  return {
    listImages: rpc('ListImages', read),
    imageStatus: rpc('ImageStatus', { ...read, check: checkImageStatus }),
    // How long a pull may take is for the puller to say: the runtime itself gives up where nothing moves.
    pullImage: rpc('PullImage', { kind: 'work', deadlineMs: unbounded, check: checkPulledImage }),
    removeImage: rpc('RemoveImage', end),
    imageFsInfo: rpc('ImageFsInfo', unboundedRead),
  }
}

/**
 * What a reply must have to be accepted, as the kubelet has it (`cri-client/pkg/remote_runtime.go`, `remote_image.go`
 * and `utils.go`, Kubernetes 1.36). Each check says what is missing, or gives undefined.
 */
type Lack = string | undefined

function missing(fields: Readonly<Record<string, unknown>>): Lack {
  const absent = Object.entries(fields)
    .filter(([, value]) => value === '' || value === 0 || value === null || value === undefined)
    .map(([name]) => name)
  return absent.length === 0 ? undefined : `the runtime's reply lacks ${absent.join(', ')}`
}

/** The check of a reply that must have these fields. */
function needs<Reply extends object>(...fields: readonly (keyof Reply & string)[]): (reply: Reply) => Lack {
  return (reply) => missing(Object.fromEntries(fields.map((field) => [field, reply[field]])))
}

export const checkVersion = needs<cri.VersionResponse>(
  'version',
  'runtimeName',
  'runtimeVersion',
  'runtimeApiVersion',
)
export const checkSandboxId = needs<cri.RunPodSandboxResponse>('podSandboxId')
export const checkContainerId = needs<cri.CreateContainerResponse>('containerId')
export const checkStreamingUrl = needs<{ readonly url: string }>('url')
export const checkPulledImage = needs<cri.PullImageResponse>('imageRef')

/** The version of the runtime API that the kubelet asks for (`pkg/kubelet/kuberuntime/kuberuntime_manager.go`, 1.36). */
const apiVersion = '0.1.0'

/** Why podd can't work with a runtime that answered this to Version. */
export function apiVersionProblem({ version, runtimeName }: cri.VersionResponse): string | undefined {
  return version === apiVersion
    ? undefined
    : `${runtimeName} speaks version ${version} of the runtime API, and podd needs ${apiVersion}: install a release of it that serves CRI v1`
}

/** Both conditions must be present; they may be false. */
export function checkStatus(reply: cri.StatusResponse): Lack {
  const types = new Set(reply.status?.conditions.map((condition) => condition.type))
  const absent = ['RuntimeReady', 'NetworkReady'].filter((type) => !types.has(type))
  return absent.length === 0 ? undefined : `the runtime's status lacks the condition ${absent.join(' and ')}`
}

export function checkSandboxStatus({ status }: cri.PodSandboxStatusResponse): Lack {
  if (status === null) return missing({ status })
  const { id, metadata, createdAt } = status
  const { name, namespace, uid } = metadata ?? {}
  return missing({
    id,
    'metadata.name': name,
    'metadata.namespace': namespace,
    'metadata.uid': uid,
    createdAt,
  })
}

export function checkContainerStatus({ status }: cri.ContainerStatusResponse): Lack {
  if (status === null) return missing({ status })
  const { id, metadata, createdAt, image, imageRef } = status
  return missing({ id, 'metadata.name': metadata?.name, createdAt, 'image.image': image?.image, imageRef })
}

/** No image means that it doesn't exist; one without id or size is invalid. */
export function checkImageStatus({ image }: cri.ImageStatusResponse): Lack {
  return image === null ? undefined : missing({ 'image.id': image.id, 'image.size': image.size })
}

/**
 * The runtime's cgroup driver as it reports it; undefined where it doesn't. From containerd 2.0 on there is a call for
 * it, 1.x has it in its verbose status (`containerd.runtimes.<default>.options.SystemdCgroup`). Throws what the calls
 * throw, but for the one that an older runtime lacks: a guess would put containers outside their pods' cgroups.
 */
export async function askCgroupDriver(
  runtime: Pick<RuntimeService, 'runtimeConfig' | 'status'>,
  options?: Parameters<RuntimeService['status']>[1],
): Promise<CgroupDriver | undefined> {
  try {
    const { linux } = await runtime.runtimeConfig({}, options)
    if (linux !== null) return linux.cgroupDriver === 'SYSTEMD' ? 'systemd' : 'cgroupfs'
  } catch (error) {
    if (!isCriError(error, 'RUNTIME_UNSUPPORTED')) throw error
  }
  const { info } = await runtime.status({ verbose: true }, options)
  return configuredDriver(info['config'])
}

function configuredDriver(config: string | undefined): CgroupDriver | undefined {
  const containerd = jsonAt(parseJson(config), 'containerd')
  const name = jsonAt(containerd, 'defaultRuntimeName')
  const handler = typeof name === 'string' && name !== '' ? name : 'runc'
  const runtime = jsonAt(containerd, 'runtimes', handler)
  const type = jsonAt(runtime, 'runtimeType')
  if (typeof type !== 'string' || type === '') return undefined
  return jsonAt(runtime, 'options', 'SystemdCgroup') === true ? 'systemd' : 'cgroupfs'
}
