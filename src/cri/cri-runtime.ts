import type * as cri from '../cri-types/cri-v1.ts'

/** Options of one call. */
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

type Rpc<Request, Reply> = (request: Request, options?: CallOptions) => Promise<Reply>

/**
 * CRI v1's RuntimeService, one method per RPC. Replies are checked as the kubelet checks them
 * (`cri-client/pkg/remote_runtime.go`, Kubernetes 1.36). All methods throw CriError (cri-error.ts).
 */
export interface RuntimeService {
  readonly version: Rpc<cri.VersionRequestInput, cri.VersionResponse>
  readonly runPodSandbox: Rpc<cri.RunPodSandboxRequestInput, cri.RunPodSandboxResponse>
  readonly stopPodSandbox: Rpc<cri.StopPodSandboxRequestInput, cri.StopPodSandboxResponse>
  readonly removePodSandbox: Rpc<cri.RemovePodSandboxRequestInput, cri.RemovePodSandboxResponse>
  readonly podSandboxStatus: Rpc<cri.PodSandboxStatusRequestInput, cri.PodSandboxStatusResponse>
  readonly listPodSandbox: Rpc<cri.ListPodSandboxRequestInput, cri.ListPodSandboxResponse>
  readonly createContainer: Rpc<cri.CreateContainerRequestInput, cri.CreateContainerResponse>
  readonly startContainer: Rpc<cri.StartContainerRequestInput, cri.StartContainerResponse>
  readonly stopContainer: Rpc<cri.StopContainerRequestInput, cri.StopContainerResponse>
  readonly removeContainer: Rpc<cri.RemoveContainerRequestInput, cri.RemoveContainerResponse>
  readonly listContainers: Rpc<cri.ListContainersRequestInput, cri.ListContainersResponse>
  readonly containerStatus: Rpc<cri.ContainerStatusRequestInput, cri.ContainerStatusResponse>
  readonly updateContainerResources: Rpc<
    cri.UpdateContainerResourcesRequestInput,
    cri.UpdateContainerResourcesResponse
  >
  readonly reopenContainerLog: Rpc<cri.ReopenContainerLogRequestInput, cri.ReopenContainerLogResponse>
  readonly checkpointContainer: Rpc<cri.CheckpointContainerRequestInput, cri.CheckpointContainerResponse>
  readonly execSync: Rpc<cri.ExecSyncRequestInput, cri.ExecSyncResponse>
  readonly exec: Rpc<cri.ExecRequestInput, cri.ExecResponse>
  readonly attach: Rpc<cri.AttachRequestInput, cri.AttachResponse>
  readonly portForward: Rpc<cri.PortForwardRequestInput, cri.PortForwardResponse>
  readonly containerStats: Rpc<cri.ContainerStatsRequestInput, cri.ContainerStatsResponse>
  readonly listContainerStats: Rpc<cri.ListContainerStatsRequestInput, cri.ListContainerStatsResponse>
  readonly podSandboxStats: Rpc<cri.PodSandboxStatsRequestInput, cri.PodSandboxStatsResponse>
  readonly listPodSandboxStats: Rpc<cri.ListPodSandboxStatsRequestInput, cri.ListPodSandboxStatsResponse>
  readonly updateRuntimeConfig: Rpc<cri.UpdateRuntimeConfigRequestInput, cri.UpdateRuntimeConfigResponse>
  readonly status: Rpc<cri.StatusRequestInput, cri.StatusResponse>
  readonly listMetricDescriptors: Rpc<
    cri.ListMetricDescriptorsRequestInput,
    cri.ListMetricDescriptorsResponse
  >
  readonly listPodSandboxMetrics: Rpc<
    cri.ListPodSandboxMetricsRequestInput,
    cri.ListPodSandboxMetricsResponse
  >
  readonly runtimeConfig: Rpc<cri.RuntimeConfigRequestInput, cri.RuntimeConfigResponse>
  readonly updatePodSandboxResources: Rpc<
    cri.UpdatePodSandboxResourcesRequestInput,
    cri.UpdatePodSandboxResourcesResponse
  >
}

/** CRI v1's ImageService. */
export interface ImageService {
  readonly listImages: Rpc<cri.ListImagesRequestInput, cri.ListImagesResponse>
  readonly imageStatus: Rpc<cri.ImageStatusRequestInput, cri.ImageStatusResponse>
  readonly pullImage: Rpc<cri.PullImageRequestInput, cri.PullImageResponse>
  readonly removeImage: Rpc<cri.RemoveImageRequestInput, cri.RemoveImageResponse>
  readonly imageFsInfo: Rpc<cri.ImageFsInfoRequestInput, cri.ImageFsInfoResponse>
}

/** CRI's name for an image. */
export function specOf(image: string): cri.ImageSpecInput {
  return { image, userSpecifiedImage: image }
}
