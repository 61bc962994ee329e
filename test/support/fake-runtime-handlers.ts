import { status } from '@grpc/grpc-js'
import type { Clock } from '../../src/base/clock.ts'
import type * as cri from '../../src/cri-types/cri-v1.ts'
import { FakeRuntimeError, fullImageName, notFound } from './fake-runtime-world.ts'
import type {
  ContainerScript,
  FakeContainer,
  FakeImage,
  FakeRuntimeWorld,
  FakeSandbox,
} from './fake-runtime-world.ts'

/** What a test may set about the fake's answers. */
export interface FakeRuntimeSettings {
  version: string
  readonly clock: Clock
  cni: 'works' | 'fails' | 'hangs'
  networkReady: boolean
  runtimeReady: boolean
  /** What it serves of CRI. */
  apiVersion: string
  /** What registries hold, by full name. */
  readonly registry: Map<string, FakeImage>
  imageFsUsedBytes: number
  cpuNanoCores: number
  memoryBytes: number
  script(container: FakeContainer): ContainerScript
  exec(container: FakeContainer, command: readonly string[]): FakeExec
}

/** What a command in a container does. */
export interface FakeExec {
  readonly exitCode?: number
  readonly stdout?: string
  readonly stderr?: string
  readonly afterMs?: number
  /** It goes on over its timeout, as containerd does while anything holds the command's output. */
  readonly outlivesTimeout?: boolean
}

/** Answers one RPC; the signal ends when the caller has gone. */
export type FakeHandler = (request: never, signal: AbortSignal) => object | Promise<object>

const nanos = (ms: number | undefined): number => (ms ?? 0) * 1e6
const forever = (signal: AbortSignal): Promise<never> =>
  new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
const failed = (message: string): FakeRuntimeError => new FakeRuntimeError(status.UNKNOWN, message)

function matches(
  labels: Readonly<Record<string, string>>,
  selector: Readonly<Record<string, string>> | undefined,
): boolean {
  return Object.entries(selector ?? {}).every(([key, value]) => labels[key] === value)
}

function sandboxItem(sandbox: FakeSandbox): cri.Sent<cri.PodSandbox> {
  const { id, config, runtimeHandler, createdAtMs, ready } = sandbox
  const { metadata, labels, annotations } = config
  const state = ready ? 'SANDBOX_READY' : 'SANDBOX_NOTREADY'
  return { id, metadata, labels, annotations, runtimeHandler, createdAt: nanos(createdAtMs), state }
}

function containerItem(container: FakeContainer): cri.Sent<cri.Container> {
  const { id, sandbox, config, image, createdAtMs, state } = container
  const { metadata, labels, annotations } = config
  return {
    id,
    podSandboxId: sandbox.id,
    metadata,
    image: config.image,
    imageRef: image.id,
    state,
    createdAt: nanos(createdAtMs),
    labels,
    annotations,
  }
}

function containerStatus(container: FakeContainer): cri.Sent<cri.ContainerStatus> {
  const { config, startedAtMs, finishedAtMs, exitCode, reason, message, resources, sandbox } = container
  const { id, metadata, image, imageRef, state, createdAt, labels, annotations } = containerItem(container)
  return {
    id,
    metadata,
    image,
    imageRef,
    state,
    createdAt,
    labels,
    annotations,
    startedAt: nanos(startedAtMs),
    finishedAt: nanos(finishedAtMs),
    exitCode,
    reason,
    message,
    mounts: config.mounts,
    logPath: config.logPath === '' ? '' : `${sandbox.config.logDirectory}/${config.logPath}`,
    resources: resources === null ? null : { linux: resources },
    stopSignal: config.stopSignal,
  }
}

function imageItem(image: FakeImage): cri.Sent<cri.Image> {
  return {
    id: image.id,
    repoTags: image.tags,
    size: image.sizeBytes,
    uid: image.uid === undefined ? null : { value: image.uid },
    username: image.username,
    pinned: image.pinned,
  }
}

/** The answers of the fake runtime, RPC by RPC, as containerd gives them. */
export function fakeHandlers(
  world: FakeRuntimeWorld,
  settings: FakeRuntimeSettings,
): Record<string, FakeHandler> {
  const { clock } = settings

  const containerStats = (container: FakeContainer): cri.Sent<cri.ContainerStats> => {
    if (container.process === undefined) throw failed('unexpected metrics response: []')
    const timestamp = nanos(clock.wallMs())
    const { id, config } = container
    const { metadata, labels, annotations } = config
    return {
      attributes: { id, metadata, labels, annotations },
      cpu: {
        timestamp,
        usageCoreNanoSeconds: { value: 1000 },
        usageNanoCores: { value: settings.cpuNanoCores },
      },
      memory: { timestamp, workingSetBytes: { value: settings.memoryBytes } },
    }
  }
  const running = (): FakeContainer[] => [...world.containers.values()].filter((c) => c.process !== undefined)
  const sandboxStats = (sandbox: FakeSandbox): cri.Sent<cri.PodSandboxStats> => {
    const { metadata, labels, annotations } = sandbox.config
    const containers = running().filter((container) => container.sandbox === sandbox)
    const timestamp = nanos(clock.wallMs())
    const sum = settings.memoryBytes * containers.length
    return {
      attributes: { id: sandbox.id, metadata, labels, annotations },
      linux: {
        cpu: { timestamp, usageNanoCores: { value: settings.cpuNanoCores * containers.length } },
        memory: { timestamp, workingSetBytes: { value: sum } },
        containers: containers.map(containerStats),
      },
    }
  }
  const runningContainer = (id: string, doing: string): FakeContainer => {
    const container = world.getContainer(id)
    if (container.process === undefined) throw failed(`${doing}: container is in ${container.state} state`)
    return container
  }
  const streamingUrl = (kind: string, id: string): object => ({ url: `http://127.0.0.1:10010/${kind}/${id}` })

  return {
    Version: (): cri.Sent<cri.VersionResponse> => ({
      version: settings.apiVersion,
      runtimeName: 'containerd',
      runtimeVersion: settings.version,
      runtimeApiVersion: 'v1',
    }),
    Status: ({ verbose }: cri.StatusRequest): cri.Sent<cri.StatusResponse> => ({
      status: {
        conditions: [
          {
            type: 'RuntimeReady',
            status: settings.runtimeReady,
            reason: settings.runtimeReady ? '' : 'ShutsDown',
            message: settings.runtimeReady ? '' : 'it is about to end',
          },
          {
            type: 'NetworkReady',
            status: settings.networkReady,
            reason: settings.networkReady ? '' : 'NetworkPluginNotReady',
            message: settings.networkReady ? '' : 'Network plugin returns error: cni plugin not initialized',
          },
        ],
      },
      info: verbose ? { config: '{}' } : {},
    }),
    RuntimeConfig: () => ({ linux: { cgroupDriver: 'CGROUPFS' } }),
    UpdateRuntimeConfig: () => ({}),

    RunPodSandbox: async ({ config, runtimeHandler }: cri.RunPodSandboxRequest, signal) => {
      if (config?.metadata === null || config === null) throw failed('sandbox config must include metadata')
      if (runtimeHandler !== '' && runtimeHandler !== 'runc') {
        throw failed(`failed to get sandbox runtime: no runtime for "${runtimeHandler}" is configured`)
      }
      if (config.linux?.securityContext?.namespaceOptions?.network !== 'NODE') {
        if (settings.cni === 'hangs') await forever(signal)
        if (settings.cni === 'fails')
          throw failed('failed to setup network for sandbox: the network is out of order')
      }
      return { podSandboxId: world.addSandbox(config, runtimeHandler).id }
    },
    StopPodSandbox: ({ podSandboxId }: cri.StopPodSandboxRequest) => {
      const sandbox = world.sandboxes.get(podSandboxId)
      if (sandbox !== undefined) world.stopSandbox(sandbox)
      return {}
    },
    RemovePodSandbox: ({ podSandboxId }: cri.RemovePodSandboxRequest) => {
      const sandbox = world.sandboxes.get(podSandboxId)
      if (sandbox !== undefined) world.removeSandbox(sandbox)
      return {}
    },
    PodSandboxStatus: ({
      podSandboxId,
    }: cri.PodSandboxStatusRequest): cri.Sent<cri.PodSandboxStatusResponse> => {
      const sandbox = world.getSandbox(podSandboxId)
      const options = sandbox.config.linux?.securityContext?.namespaceOptions ?? null
      return {
        status: {
          ...sandboxItem(sandbox),
          network: { ip: sandbox.ip },
          linux: { namespaces: { options } },
        },
      }
    },
    ListPodSandbox: ({ filter }: cri.ListPodSandboxRequest): cri.Sent<cri.ListPodSandboxResponse> => ({
      items: [...world.sandboxes.values()]
        .map(sandboxItem)
        .filter(
          ({ id = '', state, labels = {} }) =>
            (filter === null || filter.id === '' || id.startsWith(filter.id)) &&
            (filter === null || filter.state === null || filter.state.state === state) &&
            matches(labels, filter?.labelSelector),
        ),
    }),

    CreateContainer: ({
      podSandboxId,
      config,
    }: cri.CreateContainerRequest): cri.Sent<cri.CreateContainerResponse> => {
      const sandbox = world.sandboxes.get(podSandboxId)
      if (sandbox === undefined) throw notFound(`failed to find sandbox id "${podSandboxId}"`)
      if (config === null) throw failed('container config must include metadata')
      return { containerId: world.addContainer(sandbox, config).id }
    },
    StartContainer: ({ containerId }: cri.StartContainerRequest) => {
      const container = world.getContainer(containerId)
      world.start(container, settings.script(container))
      return {}
    },
    StopContainer: async ({ containerId, timeout }: cri.StopContainerRequest) => {
      const container = world.containers.get(containerId)
      if (container !== undefined) await world.stop(container, timeout * 1000)
      return {}
    },
    RemoveContainer: ({ containerId }: cri.RemoveContainerRequest) => {
      const container = world.containers.get(containerId)
      if (container !== undefined) world.removeContainer(container)
      return {}
    },
    ListContainers: ({ filter }: cri.ListContainersRequest): cri.Sent<cri.ListContainersResponse> => ({
      containers: [...world.containers.values()]
        .map(containerItem)
        .filter(
          ({ id = '', podSandboxId, state, labels = {} }) =>
            (filter === null || filter.id === '' || id.startsWith(filter.id)) &&
            (filter === null || filter.podSandboxId === '' || filter.podSandboxId === podSandboxId) &&
            (filter === null || filter.state === null || filter.state.state === state) &&
            matches(labels, filter?.labelSelector),
        ),
    }),
    ContainerStatus: ({
      containerId,
    }: cri.ContainerStatusRequest): cri.Sent<cri.ContainerStatusResponse> => ({
      status: containerStatus(world.getContainer(containerId)),
    }),
    UpdateContainerResources: ({ containerId, linux }: cri.UpdateContainerResourcesRequest) => {
      const container = world.getContainer(containerId)
      const set = Object.entries(linux ?? {}).filter(([, value]) => value !== 0 && value !== '')
      container.resources = {
        ...container.resources,
        ...Object.fromEntries(set),
      } as cri.LinuxContainerResources
      return {}
    },
    ReopenContainerLog: ({ containerId }: cri.ReopenContainerLogRequest) => {
      if (world.getContainer(containerId).process === undefined) throw failed('container is not running')
      return {}
    },

    ExecSync: async (
      { containerId, cmd, timeout }: cri.ExecSyncRequest,
      signal,
    ): Promise<cri.Sent<cri.ExecSyncResponse>> => {
      const container = runningContainer(containerId, 'failed to exec in container')
      const { exitCode = 0, stdout = '', stderr = '', afterMs = 0, ...exec } = settings.exec(container, cmd)
      const tooLong = exec.outlivesTimeout !== true && timeout > 0 && afterMs > timeout * 1000
      if (afterMs > 0) await clock.sleep(tooLong ? timeout * 1000 : afterMs, signal)
      if (tooLong) {
        throw new FakeRuntimeError(
          status.DEADLINE_EXCEEDED,
          `failed to exec in container: timeout ${timeout}s exceeded: context deadline exceeded`,
        )
      }
      return { exitCode, stdout: Buffer.from(stdout), stderr: Buffer.from(stderr) }
    },
    Exec: ({ containerId, stdin, stdout, stderr, tty }: cri.ExecRequest) => {
      if (!stdin && !stdout && !stderr && !tty) {
        throw new FakeRuntimeError(status.INVALID_ARGUMENT, 'one of stdin, stdout, or stderr must be set')
      }
      return streamingUrl('exec', runningContainer(containerId, 'failed to exec in container').id)
    },
    Attach: ({ containerId }: cri.AttachRequest) =>
      streamingUrl('attach', runningContainer(containerId, 'failed to attach').id),
    PortForward: ({ podSandboxId }: cri.PortForwardRequest) => {
      if (!world.getSandbox(podSandboxId).ready) throw failed('sandbox container is not running')
      return streamingUrl('portforward', podSandboxId)
    },

    ContainerStats: ({ containerId }: cri.ContainerStatsRequest) => ({
      stats: containerStats(world.getContainer(containerId)),
    }),
    ListContainerStats: ({ filter }: cri.ListContainerStatsRequest) => ({
      stats: running()
        .filter(
          ({ id, sandbox, config }) =>
            (filter === null || filter.id === '' || id.startsWith(filter.id)) &&
            (filter === null || filter.podSandboxId === '' || filter.podSandboxId === sandbox.id) &&
            matches(config.labels, filter?.labelSelector),
        )
        .map(containerStats),
    }),
    PodSandboxStats: ({ podSandboxId }: cri.PodSandboxStatsRequest) => {
      const sandbox = world.getSandbox(podSandboxId)
      if (!sandbox.ready)
        throw failed('failed to get pod sandbox stats since sandbox container is not in ready state')
      return { stats: sandboxStats(sandbox) }
    },
    ListPodSandboxStats: ({ filter }: cri.ListPodSandboxStatsRequest) => ({
      stats: [...world.sandboxes.values()]
        .filter(
          ({ id, ready, config }) =>
            ready &&
            (filter === null || filter.id === '' || id.startsWith(filter.id)) &&
            matches(config.labels, filter?.labelSelector),
        )
        .map(sandboxStats),
    }),
    CheckpointContainer: ({ containerId }: cri.CheckpointContainerRequest) => {
      world.getContainer(containerId)
      throw failed('CRIU binary not found or too old')
    },
    ListMetricDescriptors: () => ({ descriptors: [] }),
    ListPodSandboxMetrics: () => ({ podMetrics: [] }),

    ListImages: (): cri.Sent<cri.ListImagesResponse> => ({
      images: [...world.images.values()].map(imageItem),
    }),
    ImageStatus: ({ image }: cri.ImageStatusRequest): cri.Sent<cri.ImageStatusResponse> => {
      const found = world.findImage(image?.image ?? '')
      return { image: found === undefined ? null : imageItem(found) }
    },
    PullImage: ({ image }: cri.PullImageRequest): cri.Sent<cri.PullImageResponse> => {
      const name = fullImageName(image?.image ?? '')
      const found = settings.registry.get(name)
      if (found === undefined) throw notFound(`failed to pull and unpack image "${name}": ${name}`)
      world.images.set(found.id, found)
      return { imageRef: found.id }
    },
    RemoveImage: ({ image }: cri.RemoveImageRequest) => {
      const found = world.findImage(image?.image ?? '')
      if (found !== undefined) world.images.delete(found.id)
      return {}
    },
    ImageFsInfo: (): cri.Sent<cri.ImageFsInfoResponse> => ({
      imageFilesystems: [
        {
          timestamp: nanos(clock.wallMs()),
          fsId: { mountpoint: '/var/lib/containerd' },
          usedBytes: { value: settings.imageFsUsedBytes },
          inodesUsed: { value: 1 },
        },
      ],
    }),
  }
}
