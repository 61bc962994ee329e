import { Status } from '@grpc/grpc-js/build/src/constants.js'
import { PoddError } from '../base/errors.ts'
import type { PoddErrorOptions } from '../base/errors.ts'
import type * as cri from '../cri-types/cri-v1.ts'
import type { GrpcStatus } from '../grpc/grpc-channel.ts'

export interface CallOptions {
  /** Ends the waiting with the signal's reason. A call that changes something still completes in the runtime. */
  readonly signal?: AbortSignal | undefined
  /** Overrides the RPC's own deadline. */
  readonly deadlineMs?: number | undefined
  /** Called when the call is sent to the connected runtime; again if it is resent. */
  readonly onSent?: (() => void) | undefined
  /** Sends the call although the gate is closed (see CallGate in call-runtime.ts). */
  readonly isUngated?: boolean | undefined
}

type Rpc<Request, Reply> = (request: cri.Sent<Request>, options?: CallOptions) => Promise<Reply>

/**
 * What podd calls of CRI v1's RuntimeService, one method per RPC. Replies are checked as the kubelet checks them
 * (`cri-client/pkg/remote_runtime.go`, Kubernetes 1.36). All methods throw CriError.
 */
export interface RuntimeService {
  readonly version: Rpc<cri.VersionRequest, cri.VersionResponse>
  readonly runPodSandbox: Rpc<cri.RunPodSandboxRequest, cri.RunPodSandboxResponse>
  readonly stopPodSandbox: Rpc<cri.StopPodSandboxRequest, cri.StopPodSandboxResponse>
  readonly removePodSandbox: Rpc<cri.RemovePodSandboxRequest, cri.RemovePodSandboxResponse>
  readonly podSandboxStatus: Rpc<cri.PodSandboxStatusRequest, cri.PodSandboxStatusResponse>
  readonly listPodSandbox: Rpc<cri.ListPodSandboxRequest, cri.ListPodSandboxResponse>
  readonly createContainer: Rpc<cri.CreateContainerRequest, cri.CreateContainerResponse>
  readonly startContainer: Rpc<cri.StartContainerRequest, cri.StartContainerResponse>
  readonly stopContainer: Rpc<cri.StopContainerRequest, cri.StopContainerResponse>
  readonly removeContainer: Rpc<cri.RemoveContainerRequest, cri.RemoveContainerResponse>
  readonly listContainers: Rpc<cri.ListContainersRequest, cri.ListContainersResponse>
  readonly containerStatus: Rpc<cri.ContainerStatusRequest, cri.ContainerStatusResponse>
  readonly updateContainerResources: Rpc<
    cri.UpdateContainerResourcesRequest,
    cri.UpdateContainerResourcesResponse
  >
  readonly reopenContainerLog: Rpc<cri.ReopenContainerLogRequest, cri.ReopenContainerLogResponse>
  readonly checkpointContainer: Rpc<cri.CheckpointContainerRequest, cri.CheckpointContainerResponse>
  readonly execSync: Rpc<cri.ExecSyncRequest, cri.ExecSyncResponse>
  readonly exec: Rpc<cri.ExecRequest, cri.ExecResponse>
  readonly attach: Rpc<cri.AttachRequest, cri.AttachResponse>
  readonly portForward: Rpc<cri.PortForwardRequest, cri.PortForwardResponse>
  readonly containerStats: Rpc<cri.ContainerStatsRequest, cri.ContainerStatsResponse>
  readonly listContainerStats: Rpc<cri.ListContainerStatsRequest, cri.ListContainerStatsResponse>
  readonly podSandboxStats: Rpc<cri.PodSandboxStatsRequest, cri.PodSandboxStatsResponse>
  readonly listPodSandboxStats: Rpc<cri.ListPodSandboxStatsRequest, cri.ListPodSandboxStatsResponse>
  readonly updateRuntimeConfig: Rpc<cri.UpdateRuntimeConfigRequest, cri.UpdateRuntimeConfigResponse>
  readonly status: Rpc<cri.StatusRequest, cri.StatusResponse>
  readonly listMetricDescriptors: Rpc<cri.ListMetricDescriptorsRequest, cri.ListMetricDescriptorsResponse>
  readonly listPodSandboxMetrics: Rpc<cri.ListPodSandboxMetricsRequest, cri.ListPodSandboxMetricsResponse>
  readonly runtimeConfig: Rpc<cri.RuntimeConfigRequest, cri.RuntimeConfigResponse>
}

export interface ImageService {
  readonly listImages: Rpc<cri.ListImagesRequest, cri.ListImagesResponse>
  readonly imageStatus: Rpc<cri.ImageStatusRequest, cri.ImageStatusResponse>
  readonly pullImage: Rpc<cri.PullImageRequest, cri.PullImageResponse>
  readonly removeImage: Rpc<cri.RemoveImageRequest, cri.RemoveImageResponse>
  readonly imageFsInfo: Rpc<cri.ImageFsInfoRequest, cri.ImageFsInfoResponse>
}

/** CRI's name for an image. */
export function specOf(image: string): cri.Sent<cri.ImageSpec> {
  return { image, userSpecifiedImage: image }
}

/** How podd classifies a failed call to the runtime. */
export type CriErrorCode =
  /** The sandbox, container or image does not exist. */
  | 'RUNTIME_NOT_FOUND'
  /** It exists already. */
  | 'RUNTIME_EXISTS'
  /** The runtime rejects the request. */
  | 'RUNTIME_INVALID'
  /** There is no connection to the runtime, it broke during the call, or the gate is closed (CallGate). */
  | 'RUNTIME_UNAVAILABLE'
  /** No answer within the deadline, or the runtime's own timeout passed. */
  | 'RUNTIME_TIMEOUT'
  /** This runtime lacks the call. */
  | 'RUNTIME_UNSUPPORTED'
  /** The answer lacks what it must have. */
  | 'RUNTIME_BAD_REPLY'
  /** The runtime speaks no CRI v1. */
  | 'RUNTIME_API_VERSION'
  /** The endpoint is not a unix socket's. */
  | 'RUNTIME_ENDPOINT'
  /** Anything else. */
  | 'RUNTIME_FAILED'

/** A failed call to the runtime. The message is the runtime's own where it gave one. */
export class CriError extends PoddError {
  declare readonly code: CriErrorCode
  readonly method: string | undefined
  readonly grpcCode: number | undefined

  /**
   * @param options.method the RPC that failed, as the CRI names it: `RunPodSandbox`
   * @param options.grpcCode the runtime's gRPC status, where it gave one
   */
  constructor(
    code: CriErrorCode,
    message: string,
    options: PoddErrorOptions & { method?: string | undefined; grpcCode?: number | undefined } = {},
  ) {
    super(code, message, options)
    this.method = options.method
    this.grpcCode = options.grpcCode
  }
}

export function isCriError(error: unknown, code?: CriErrorCode): error is CriError {
  return error instanceof CriError && (code === undefined || error.code === code)
}

/** Codes of gRPC that mean something to podd; all others are RUNTIME_FAILED. */
const criCodes: ReadonlyMap<number, CriErrorCode> = new Map([
  [Status.NOT_FOUND, 'RUNTIME_NOT_FOUND'],
  [Status.ALREADY_EXISTS, 'RUNTIME_EXISTS'],
  [Status.INVALID_ARGUMENT, 'RUNTIME_INVALID'],
  [Status.OUT_OF_RANGE, 'RUNTIME_INVALID'],
  [Status.DEADLINE_EXCEEDED, 'RUNTIME_TIMEOUT'],
  [Status.UNIMPLEMENTED, 'RUNTIME_UNSUPPORTED'],
])

/** The statuses of calls that the runtime did not answer: the connection broke, or the runtime reset it as it went. */
const lostCodes: ReadonlySet<number> = new Set([Status.UNAVAILABLE, Status.CANCELLED])

function isGrpcStatus(error: unknown): error is GrpcStatus {
  return (
    typeof error === 'object' &&
    error !== null &&
    'code' in error &&
    typeof error.code === 'number' &&
    'details' in error &&
    typeof error.details === 'string' &&
    'isAnswer' in error
  )
}

/** The error of a gRPC call as a CriError. This is the only place that knows gRPC's codes. */
export function criErrorFrom(error: unknown, method: string): CriError {
  if (error instanceof CriError) return error
  if (!isGrpcStatus(error)) {
    return new CriError('RUNTIME_FAILED', `${method}: ${String(error)}`, { cause: error, method })
  }
  // The runtime itself may answer UNAVAILABLE about the object of a call (containerd 1.7 and 2.x do for the stats of a stopped sandbox).
  const lost = lostCodes.has(error.code) && !error.isAnswer
  const code = lost ? 'RUNTIME_UNAVAILABLE' : (criCodes.get(error.code) ?? 'RUNTIME_FAILED')
  const message = error.details === '' ? `${method} failed with gRPC code ${error.code}` : error.details
  const hint =
    code === 'RUNTIME_UNAVAILABLE'
      ? 'Check that the container runtime runs and that the endpoint names its socket.'
      : undefined
  return new CriError(code, message, { method, grpcCode: error.code, hint })
}

/** True where a runtime that is just starting may answer so: containerd 1.6 says UNKNOWN until its CRI plugin is up. */
export function mayBeStarting(error: unknown): boolean {
  const code = error instanceof CriError ? error.grpcCode : undefined
  return code === Status.UNKNOWN || code === Status.UNAVAILABLE
}
