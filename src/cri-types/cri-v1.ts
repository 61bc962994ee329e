// Generated from proto/cri-v1.proto by `npm run generate`. Do not edit.

/** A message as it may be sent: what it leaves out has its default. */
export type Sent<Message> = { readonly [Field in keyof Message]?: SentValue<Message[Field]> | undefined }

type SentValue<Value> = Value extends Uint8Array
  ? Uint8Array
  : Value extends readonly (infer Item)[]
    ? readonly SentValue<Item>[]
    : Value extends object
      ? string extends keyof Value
        ? { readonly [Key in keyof Value]: SentValue<Value[Key]> }
        : Sent<Value>
      : Value

export interface VersionRequest {
  readonly version: string
}

export interface VersionResponse {
  readonly version: string
  readonly runtimeName: string
  readonly runtimeVersion: string
  readonly runtimeApiVersion: string
}

export interface DNSConfig {
  readonly servers: readonly string[]
  readonly searches: readonly string[]
  readonly options: readonly string[]
}

export interface PortMapping {
  readonly protocol: Protocol
  readonly containerPort: number
  readonly hostPort: number
  readonly hostIp: string
}

export interface Mount {
  readonly containerPath: string
  readonly hostPath: string
  readonly readonly: boolean
  readonly selinuxRelabel: boolean
  readonly propagation: MountPropagation
  readonly uidMappings: readonly IDMapping[]
  readonly gidMappings: readonly IDMapping[]
  readonly recursiveReadOnly: boolean
  readonly image: ImageSpec | null
  readonly imageSubPath: string
  readonly mountOptions: readonly string[]
}

export interface IDMapping {
  readonly hostId: number
  readonly containerId: number
  readonly length: number
}

export interface UserNamespace {
  readonly mode: NamespaceMode
  readonly uids: readonly IDMapping[]
  readonly gids: readonly IDMapping[]
}

export interface NamespaceOption {
  readonly network: NamespaceMode
  readonly pid: NamespaceMode
  readonly ipc: NamespaceMode
  readonly targetId: string
  readonly usernsOptions: UserNamespace | null
}

export interface Int64Value {
  readonly value: number
}

export interface LinuxSandboxSecurityContext {
  readonly namespaceOptions: NamespaceOption | null
  readonly selinuxOptions: SELinuxOption | null
  readonly runAsUser: Int64Value | null
  readonly runAsGroup: Int64Value | null
  readonly readonlyRootfs: boolean
  readonly supplementalGroups: readonly number[]
  readonly supplementalGroupsPolicy: SupplementalGroupsPolicy
  readonly privileged: boolean
  readonly seccomp: SecurityProfile | null
  readonly apparmor: SecurityProfile | null
}

export interface SecurityProfile {
  readonly profileType: ProfileType
  readonly localhostRef: string
}

export type ProfileType = 'RuntimeDefault' | 'Unconfined' | 'Localhost'

export interface LinuxPodSandboxConfig {
  readonly cgroupParent: string
  readonly securityContext: LinuxSandboxSecurityContext | null
  readonly sysctls: Readonly<Record<string, string>>
  readonly overhead: LinuxContainerResources | null
  readonly resources: LinuxContainerResources | null
}

export interface PodSandboxMetadata {
  readonly name: string
  readonly uid: string
  readonly namespace: string
  readonly attempt: number
}

export interface PodSandboxConfig {
  readonly metadata: PodSandboxMetadata | null
  readonly hostname: string
  readonly logDirectory: string
  readonly dnsConfig: DNSConfig | null
  readonly portMappings: readonly PortMapping[]
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly linux: LinuxPodSandboxConfig | null
}

export interface RunPodSandboxRequest {
  readonly config: PodSandboxConfig | null
  readonly runtimeHandler: string
}

export interface RunPodSandboxResponse {
  readonly podSandboxId: string
}

export interface StopPodSandboxRequest {
  readonly podSandboxId: string
}

export type StopPodSandboxResponse = Readonly<Record<string, never>>

export interface RemovePodSandboxRequest {
  readonly podSandboxId: string
}

export type RemovePodSandboxResponse = Readonly<Record<string, never>>

export interface PodSandboxStatusRequest {
  readonly podSandboxId: string
  readonly verbose: boolean
}

export interface PodIP {
  readonly ip: string
}

export interface PodSandboxNetworkStatus {
  readonly ip: string
  readonly additionalIps: readonly PodIP[]
}

export interface Namespace {
  readonly options: NamespaceOption | null
}

export interface LinuxPodSandboxStatus {
  readonly namespaces: Namespace | null
}

export interface PodSandboxStatus {
  readonly id: string
  readonly metadata: PodSandboxMetadata | null
  readonly state: PodSandboxState
  readonly createdAt: number
  readonly network: PodSandboxNetworkStatus | null
  readonly linux: LinuxPodSandboxStatus | null
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly runtimeHandler: string
}

export interface PodSandboxStatusResponse {
  readonly status: PodSandboxStatus | null
  readonly info: Readonly<Record<string, string>>
  readonly timestamp: number
}

export interface PodSandboxStateValue {
  readonly state: PodSandboxState
}

export interface PodSandboxFilter {
  readonly id: string
  readonly state: PodSandboxStateValue | null
  readonly labelSelector: Readonly<Record<string, string>>
}

export interface ListPodSandboxRequest {
  readonly filter: PodSandboxFilter | null
}

export interface PodSandbox {
  readonly id: string
  readonly metadata: PodSandboxMetadata | null
  readonly state: PodSandboxState
  readonly createdAt: number
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly runtimeHandler: string
}

export interface ListPodSandboxResponse {
  readonly items: readonly PodSandbox[]
}

export interface PodSandboxStatsRequest {
  readonly podSandboxId: string
}

export interface PodSandboxStatsResponse {
  readonly stats: PodSandboxStats | null
}

export interface PodSandboxStatsFilter {
  readonly id: string
  readonly labelSelector: Readonly<Record<string, string>>
}

export interface ListPodSandboxStatsRequest {
  readonly filter: PodSandboxStatsFilter | null
}

export interface ListPodSandboxStatsResponse {
  readonly stats: readonly PodSandboxStats[]
}

export interface PodSandboxAttributes {
  readonly id: string
  readonly metadata: PodSandboxMetadata | null
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}

export interface PodSandboxStats {
  readonly attributes: PodSandboxAttributes | null
  readonly linux: LinuxPodSandboxStats | null
}

export interface LinuxPodSandboxStats {
  readonly cpu: CpuUsage | null
  readonly memory: MemoryUsage | null
  readonly network: NetworkUsage | null
  readonly process: ProcessUsage | null
  readonly containers: readonly ContainerStats[]
}

export interface NetworkUsage {
  readonly timestamp: number
  readonly defaultInterface: NetworkInterfaceUsage | null
  readonly interfaces: readonly NetworkInterfaceUsage[]
}

export interface NetworkInterfaceUsage {
  readonly name: string
  readonly rxBytes: UInt64Value | null
  readonly rxErrors: UInt64Value | null
  readonly txBytes: UInt64Value | null
  readonly txErrors: UInt64Value | null
}

export interface ProcessUsage {
  readonly timestamp: number
  readonly processCount: UInt64Value | null
}

export interface ImageSpec {
  readonly image: string
  readonly annotations: Readonly<Record<string, string>>
  readonly userSpecifiedImage: string
  readonly runtimeHandler: string
  readonly imageRef: string
}

export interface KeyValue {
  readonly key: string
  readonly value: Buffer
}

export interface LinuxContainerResources {
  readonly cpuPeriod: number
  readonly cpuQuota: number
  readonly cpuShares: number
  readonly memoryLimitInBytes: number
  readonly oomScoreAdj: number
  readonly hugepageLimits: readonly HugepageLimit[]
  readonly unified: Readonly<Record<string, string>>
  readonly memorySwapLimitInBytes: number
}

export interface HugepageLimit {
  readonly pageSize: string
  readonly limit: number
}

export interface SELinuxOption {
  readonly user: string
  readonly role: string
  readonly type: string
  readonly level: string
}

export interface Capability {
  readonly addCapabilities: readonly string[]
  readonly dropCapabilities: readonly string[]
}

export interface LinuxContainerSecurityContext {
  readonly capabilities: Capability | null
  readonly privileged: boolean
  readonly namespaceOptions: NamespaceOption | null
  readonly selinuxOptions: SELinuxOption | null
  readonly runAsUser: Int64Value | null
  readonly runAsGroup: Int64Value | null
  readonly runAsUsername: string
  readonly readonlyRootfs: boolean
  readonly supplementalGroups: readonly number[]
  readonly supplementalGroupsPolicy: SupplementalGroupsPolicy
  readonly noNewPrivs: boolean
  readonly maskedPaths: readonly string[]
  readonly readonlyPaths: readonly string[]
  readonly seccomp: SecurityProfile | null
  readonly apparmor: SecurityProfile | null
  readonly apparmorProfile: string
}

export interface LinuxContainerConfig {
  readonly resources: LinuxContainerResources | null
  readonly securityContext: LinuxContainerSecurityContext | null
}

export interface LinuxContainerUser {
  readonly uid: number
  readonly gid: number
  readonly supplementalGroups: readonly number[]
}

export interface ContainerMetadata {
  readonly name: string
  readonly attempt: number
}

export interface Device {
  readonly containerPath: string
  readonly hostPath: string
  readonly permissions: string
}

export interface ContainerConfig {
  readonly metadata: ContainerMetadata | null
  readonly image: ImageSpec | null
  readonly command: readonly string[]
  readonly args: readonly string[]
  readonly workingDir: string
  readonly envs: readonly KeyValue[]
  readonly mounts: readonly Mount[]
  readonly devices: readonly Device[]
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly logPath: string
  readonly stdin: boolean
  readonly stdinOnce: boolean
  readonly tty: boolean
  readonly linux: LinuxContainerConfig | null
  readonly stopSignal: Signal
}

export interface CreateContainerRequest {
  readonly podSandboxId: string
  readonly config: ContainerConfig | null
  readonly sandboxConfig: PodSandboxConfig | null
}

export interface CreateContainerResponse {
  readonly containerId: string
}

export interface StartContainerRequest {
  readonly containerId: string
}

export type StartContainerResponse = Readonly<Record<string, never>>

export interface StopContainerRequest {
  readonly containerId: string
  readonly timeout: number
}

export type StopContainerResponse = Readonly<Record<string, never>>

export interface RemoveContainerRequest {
  readonly containerId: string
}

export type RemoveContainerResponse = Readonly<Record<string, never>>

export interface ContainerStateValue {
  readonly state: ContainerState
}

export interface ContainerFilter {
  readonly id: string
  readonly state: ContainerStateValue | null
  readonly podSandboxId: string
  readonly labelSelector: Readonly<Record<string, string>>
}

export interface ListContainersRequest {
  readonly filter: ContainerFilter | null
}

export interface Container {
  readonly id: string
  readonly podSandboxId: string
  readonly metadata: ContainerMetadata | null
  readonly image: ImageSpec | null
  readonly imageRef: string
  readonly state: ContainerState
  readonly createdAt: number
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly imageId: string
}

export interface ListContainersResponse {
  readonly containers: readonly Container[]
}

export interface ContainerStatusRequest {
  readonly containerId: string
  readonly verbose: boolean
}

export interface ContainerStatus {
  readonly id: string
  readonly metadata: ContainerMetadata | null
  readonly state: ContainerState
  readonly createdAt: number
  readonly startedAt: number
  readonly finishedAt: number
  readonly exitCode: number
  readonly image: ImageSpec | null
  readonly imageRef: string
  readonly reason: string
  readonly message: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly mounts: readonly Mount[]
  readonly logPath: string
  readonly resources: ContainerResources | null
  readonly imageId: string
  readonly user: ContainerUser | null
  readonly stopSignal: Signal
}

export interface ContainerStatusResponse {
  readonly status: ContainerStatus | null
  readonly info: Readonly<Record<string, string>>
}

export interface ContainerResources {
  readonly linux: LinuxContainerResources | null
}

export interface ContainerUser {
  readonly linux: LinuxContainerUser | null
}

export interface UpdateContainerResourcesRequest {
  readonly containerId: string
  readonly linux: LinuxContainerResources | null
  readonly annotations: Readonly<Record<string, string>>
}

export type UpdateContainerResourcesResponse = Readonly<Record<string, never>>

export interface ExecSyncRequest {
  readonly containerId: string
  readonly cmd: readonly string[]
  readonly timeout: number
}

export interface ExecSyncResponse {
  readonly stdout: Buffer
  readonly stderr: Buffer
  readonly exitCode: number
}

export interface ExecRequest {
  readonly containerId: string
  readonly cmd: readonly string[]
  readonly tty: boolean
  readonly stdin: boolean
  readonly stdout: boolean
  readonly stderr: boolean
}

export interface ExecResponse {
  readonly url: string
}

export interface AttachRequest {
  readonly containerId: string
  readonly stdin: boolean
  readonly tty: boolean
  readonly stdout: boolean
  readonly stderr: boolean
}

export interface AttachResponse {
  readonly url: string
}

export interface PortForwardRequest {
  readonly podSandboxId: string
  readonly port: readonly number[]
}

export interface PortForwardResponse {
  readonly url: string
}

export interface ImageFilter {
  readonly image: ImageSpec | null
}

export interface ListImagesRequest {
  readonly filter: ImageFilter | null
}

export interface Image {
  readonly id: string
  readonly repoTags: readonly string[]
  readonly repoDigests: readonly string[]
  readonly size: number
  readonly uid: Int64Value | null
  readonly username: string
  readonly spec: ImageSpec | null
  readonly pinned: boolean
}

export interface ListImagesResponse {
  readonly images: readonly Image[]
}

export interface ImageStatusRequest {
  readonly image: ImageSpec | null
  readonly verbose: boolean
}

export interface ImageStatusResponse {
  readonly image: Image | null
  readonly info: Readonly<Record<string, string>>
}

export interface AuthConfig {
  readonly username: string
  readonly password: string
  readonly auth: string
  readonly identityToken: string
  readonly registryToken: string
}

export interface PullImageRequest {
  readonly image: ImageSpec | null
  readonly auth: AuthConfig | null
  readonly sandboxConfig: PodSandboxConfig | null
}

export interface PullImageResponse {
  readonly imageRef: string
}

export interface RemoveImageRequest {
  readonly image: ImageSpec | null
}

export type RemoveImageResponse = Readonly<Record<string, never>>

export interface NetworkConfig {
  readonly podCidr: string
}

export interface RuntimeConfig {
  readonly networkConfig: NetworkConfig | null
}

export interface UpdateRuntimeConfigRequest {
  readonly runtimeConfig: RuntimeConfig | null
}

export type UpdateRuntimeConfigResponse = Readonly<Record<string, never>>

export interface RuntimeCondition {
  readonly type: string
  readonly status: boolean
  readonly reason: string
  readonly message: string
}

export interface RuntimeStatus {
  readonly conditions: readonly RuntimeCondition[]
}

export interface StatusRequest {
  readonly verbose: boolean
}

export interface RuntimeHandlerFeatures {
  readonly recursiveReadOnlyMounts: boolean
  readonly userNamespaces: boolean
}

export interface RuntimeHandler {
  readonly name: string
  readonly features: RuntimeHandlerFeatures | null
}

export interface RuntimeFeatures {
  readonly supplementalGroupsPolicy: boolean
  readonly mountOptions: boolean
}

export interface StatusResponse {
  readonly status: RuntimeStatus | null
  readonly info: Readonly<Record<string, string>>
  readonly runtimeHandlers: readonly RuntimeHandler[]
  readonly features: RuntimeFeatures | null
}

export type ImageFsInfoRequest = Readonly<Record<string, never>>

export interface UInt64Value {
  readonly value: number
}

export interface FilesystemIdentifier {
  readonly mountpoint: string
}

export interface FilesystemUsage {
  readonly timestamp: number
  readonly fsId: FilesystemIdentifier | null
  readonly usedBytes: UInt64Value | null
  readonly inodesUsed: UInt64Value | null
}

export interface ImageFsInfoResponse {
  readonly imageFilesystems: readonly FilesystemUsage[]
  readonly containerFilesystems: readonly FilesystemUsage[]
}

export interface ContainerStatsRequest {
  readonly containerId: string
}

export interface ContainerStatsResponse {
  readonly stats: ContainerStats | null
}

export interface ListContainerStatsRequest {
  readonly filter: ContainerStatsFilter | null
}

export interface ContainerStatsFilter {
  readonly id: string
  readonly podSandboxId: string
  readonly labelSelector: Readonly<Record<string, string>>
}

export interface ListContainerStatsResponse {
  readonly stats: readonly ContainerStats[]
}

export interface ContainerAttributes {
  readonly id: string
  readonly metadata: ContainerMetadata | null
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}

export interface ContainerStats {
  readonly attributes: ContainerAttributes | null
  readonly cpu: CpuUsage | null
  readonly memory: MemoryUsage | null
  readonly writableLayer: FilesystemUsage | null
  readonly swap: SwapUsage | null
}

export interface CpuUsage {
  readonly timestamp: number
  readonly usageCoreNanoSeconds: UInt64Value | null
  readonly usageNanoCores: UInt64Value | null
}

export interface MemoryUsage {
  readonly timestamp: number
  readonly workingSetBytes: UInt64Value | null
  readonly availableBytes: UInt64Value | null
  readonly usageBytes: UInt64Value | null
  readonly rssBytes: UInt64Value | null
  readonly pageFaults: UInt64Value | null
  readonly majorPageFaults: UInt64Value | null
}

export interface SwapUsage {
  readonly timestamp: number
  readonly swapUsageBytes: UInt64Value | null
}

export interface ReopenContainerLogRequest {
  readonly containerId: string
}

export type ReopenContainerLogResponse = Readonly<Record<string, never>>

export interface CheckpointContainerRequest {
  readonly containerId: string
  readonly location: string
  readonly timeout: number
}

export type CheckpointContainerResponse = Readonly<Record<string, never>>

export type ListMetricDescriptorsRequest = Readonly<Record<string, never>>

export interface ListMetricDescriptorsResponse {
  readonly descriptors: readonly MetricDescriptor[]
}

export interface MetricDescriptor {
  readonly name: string
  readonly help: string
  readonly labelKeys: readonly string[]
}

export type ListPodSandboxMetricsRequest = Readonly<Record<string, never>>

export interface ListPodSandboxMetricsResponse {
  readonly podMetrics: readonly PodSandboxMetrics[]
}

export interface PodSandboxMetrics {
  readonly podSandboxId: string
  readonly metrics: readonly Metric[]
  readonly containerMetrics: readonly ContainerMetrics[]
}

export interface ContainerMetrics {
  readonly containerId: string
  readonly metrics: readonly Metric[]
}

export interface Metric {
  readonly name: string
  readonly timestamp: number
  readonly metricType: MetricType
  readonly labelValues: readonly string[]
  readonly value: UInt64Value | null
}

export type RuntimeConfigRequest = Readonly<Record<string, never>>

export interface RuntimeConfigResponse {
  readonly linux: LinuxRuntimeConfiguration | null
}

export interface LinuxRuntimeConfiguration {
  readonly cgroupDriver: CgroupDriver
}

export type Protocol = 'TCP' | 'UDP' | 'SCTP'

export type MountPropagation = 'PROPAGATION_PRIVATE' | 'PROPAGATION_HOST_TO_CONTAINER' | 'PROPAGATION_BIDIRECTIONAL'

export type NamespaceMode = 'POD' | 'CONTAINER' | 'NODE' | 'TARGET'

export type SupplementalGroupsPolicy = 'Merge' | 'Strict'

export type PodSandboxState = 'SANDBOX_READY' | 'SANDBOX_NOTREADY'

export type Signal = 'SIGNAL_RUNTIME_DEFAULT' | 'SIGNAL_SIGABRT' | 'SIGNAL_SIGALRM' | 'SIGNAL_SIGBUS' | 'SIGNAL_SIGCHLD' | 'SIGNAL_SIGCLD' | 'SIGNAL_SIGCONT' | 'SIGNAL_SIGFPE' | 'SIGNAL_SIGHUP' | 'SIGNAL_SIGILL' | 'SIGNAL_SIGINT' | 'SIGNAL_SIGIO' | 'SIGNAL_SIGIOT' | 'SIGNAL_SIGKILL' | 'SIGNAL_SIGPIPE' | 'SIGNAL_SIGPOLL' | 'SIGNAL_SIGPROF' | 'SIGNAL_SIGPWR' | 'SIGNAL_SIGQUIT' | 'SIGNAL_SIGSEGV' | 'SIGNAL_SIGSTKFLT' | 'SIGNAL_SIGSTOP' | 'SIGNAL_SIGSYS' | 'SIGNAL_SIGTERM' | 'SIGNAL_SIGTRAP' | 'SIGNAL_SIGTSTP' | 'SIGNAL_SIGTTIN' | 'SIGNAL_SIGTTOU' | 'SIGNAL_SIGURG' | 'SIGNAL_SIGUSR1' | 'SIGNAL_SIGUSR2' | 'SIGNAL_SIGVTALRM' | 'SIGNAL_SIGWINCH' | 'SIGNAL_SIGXCPU' | 'SIGNAL_SIGXFSZ' | 'SIGNAL_SIGRTMIN' | 'SIGNAL_SIGRTMINPLUS1' | 'SIGNAL_SIGRTMINPLUS2' | 'SIGNAL_SIGRTMINPLUS3' | 'SIGNAL_SIGRTMINPLUS4' | 'SIGNAL_SIGRTMINPLUS5' | 'SIGNAL_SIGRTMINPLUS6' | 'SIGNAL_SIGRTMINPLUS7' | 'SIGNAL_SIGRTMINPLUS8' | 'SIGNAL_SIGRTMINPLUS9' | 'SIGNAL_SIGRTMINPLUS10' | 'SIGNAL_SIGRTMINPLUS11' | 'SIGNAL_SIGRTMINPLUS12' | 'SIGNAL_SIGRTMINPLUS13' | 'SIGNAL_SIGRTMINPLUS14' | 'SIGNAL_SIGRTMINPLUS15' | 'SIGNAL_SIGRTMAXMINUS14' | 'SIGNAL_SIGRTMAXMINUS13' | 'SIGNAL_SIGRTMAXMINUS12' | 'SIGNAL_SIGRTMAXMINUS11' | 'SIGNAL_SIGRTMAXMINUS10' | 'SIGNAL_SIGRTMAXMINUS9' | 'SIGNAL_SIGRTMAXMINUS8' | 'SIGNAL_SIGRTMAXMINUS7' | 'SIGNAL_SIGRTMAXMINUS6' | 'SIGNAL_SIGRTMAXMINUS5' | 'SIGNAL_SIGRTMAXMINUS4' | 'SIGNAL_SIGRTMAXMINUS3' | 'SIGNAL_SIGRTMAXMINUS2' | 'SIGNAL_SIGRTMAXMINUS1' | 'SIGNAL_SIGRTMAX'

export type ContainerState = 'CONTAINER_CREATED' | 'CONTAINER_RUNNING' | 'CONTAINER_EXITED' | 'CONTAINER_UNKNOWN'

export type MetricType = 'COUNTER' | 'GAUGE'

export type CgroupDriver = 'SYSTEMD' | 'CGROUPFS'
