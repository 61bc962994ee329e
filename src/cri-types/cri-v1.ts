// Generated from proto/cri-v1.proto by `npm run generate`. Do not edit.

export interface VersionRequest {
  readonly version: string
}

export interface VersionRequestInput {
  readonly version?: string | undefined
}

export interface VersionResponse {
  readonly version: string
  readonly runtimeName: string
  readonly runtimeVersion: string
  readonly runtimeApiVersion: string
}

export interface VersionResponseInput {
  readonly version?: string | undefined
  readonly runtimeName?: string | undefined
  readonly runtimeVersion?: string | undefined
  readonly runtimeApiVersion?: string | undefined
}

export interface DNSConfig {
  readonly servers: readonly string[]
  readonly searches: readonly string[]
  readonly options: readonly string[]
}

export interface DNSConfigInput {
  readonly servers?: readonly string[] | undefined
  readonly searches?: readonly string[] | undefined
  readonly options?: readonly string[] | undefined
}

export interface PortMapping {
  readonly protocol: Protocol
  readonly containerPort: number
  readonly hostPort: number
  readonly hostIp: string
}

export interface PortMappingInput {
  readonly protocol?: Protocol | undefined
  readonly containerPort?: number | undefined
  readonly hostPort?: number | undefined
  readonly hostIp?: string | undefined
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

export interface MountInput {
  readonly containerPath?: string | undefined
  readonly hostPath?: string | undefined
  readonly readonly?: boolean | undefined
  readonly selinuxRelabel?: boolean | undefined
  readonly propagation?: MountPropagation | undefined
  readonly uidMappings?: readonly IDMappingInput[] | undefined
  readonly gidMappings?: readonly IDMappingInput[] | undefined
  readonly recursiveReadOnly?: boolean | undefined
  readonly image?: ImageSpecInput | null | undefined
  readonly imageSubPath?: string | undefined
  readonly mountOptions?: readonly string[] | undefined
}

export interface IDMapping {
  readonly hostId: number
  readonly containerId: number
  readonly length: number
}

export interface IDMappingInput {
  readonly hostId?: number | undefined
  readonly containerId?: number | undefined
  readonly length?: number | undefined
}

export interface UserNamespace {
  readonly mode: NamespaceMode
  readonly uids: readonly IDMapping[]
  readonly gids: readonly IDMapping[]
}

export interface UserNamespaceInput {
  readonly mode?: NamespaceMode | undefined
  readonly uids?: readonly IDMappingInput[] | undefined
  readonly gids?: readonly IDMappingInput[] | undefined
}

export interface NamespaceOption {
  readonly network: NamespaceMode
  readonly pid: NamespaceMode
  readonly ipc: NamespaceMode
  readonly targetId: string
  readonly usernsOptions: UserNamespace | null
}

export interface NamespaceOptionInput {
  readonly network?: NamespaceMode | undefined
  readonly pid?: NamespaceMode | undefined
  readonly ipc?: NamespaceMode | undefined
  readonly targetId?: string | undefined
  readonly usernsOptions?: UserNamespaceInput | null | undefined
}

export interface Int64Value {
  readonly value: number
}

export interface Int64ValueInput {
  readonly value?: number | undefined
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
  readonly seccompProfilePath: string
}

export interface LinuxSandboxSecurityContextInput {
  readonly namespaceOptions?: NamespaceOptionInput | null | undefined
  readonly selinuxOptions?: SELinuxOptionInput | null | undefined
  readonly runAsUser?: Int64ValueInput | null | undefined
  readonly runAsGroup?: Int64ValueInput | null | undefined
  readonly readonlyRootfs?: boolean | undefined
  readonly supplementalGroups?: readonly number[] | undefined
  readonly supplementalGroupsPolicy?: SupplementalGroupsPolicy | undefined
  readonly privileged?: boolean | undefined
  readonly seccomp?: SecurityProfileInput | null | undefined
  readonly apparmor?: SecurityProfileInput | null | undefined
  readonly seccompProfilePath?: string | undefined
}

export interface SecurityProfile {
  readonly profileType: ProfileType
  readonly localhostRef: string
}

export interface SecurityProfileInput {
  readonly profileType?: ProfileType | undefined
  readonly localhostRef?: string | undefined
}

export type ProfileType = 'RuntimeDefault' | 'Unconfined' | 'Localhost'

export interface LinuxPodSandboxConfig {
  readonly cgroupParent: string
  readonly securityContext: LinuxSandboxSecurityContext | null
  readonly sysctls: Readonly<Record<string, string>>
  readonly overhead: LinuxContainerResources | null
  readonly resources: LinuxContainerResources | null
}

export interface LinuxPodSandboxConfigInput {
  readonly cgroupParent?: string | undefined
  readonly securityContext?: LinuxSandboxSecurityContextInput | null | undefined
  readonly sysctls?: Readonly<Record<string, string>> | undefined
  readonly overhead?: LinuxContainerResourcesInput | null | undefined
  readonly resources?: LinuxContainerResourcesInput | null | undefined
}

export interface PodSandboxMetadata {
  readonly name: string
  readonly uid: string
  readonly namespace: string
  readonly attempt: number
}

export interface PodSandboxMetadataInput {
  readonly name?: string | undefined
  readonly uid?: string | undefined
  readonly namespace?: string | undefined
  readonly attempt?: number | undefined
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

export interface PodSandboxConfigInput {
  readonly metadata?: PodSandboxMetadataInput | null | undefined
  readonly hostname?: string | undefined
  readonly logDirectory?: string | undefined
  readonly dnsConfig?: DNSConfigInput | null | undefined
  readonly portMappings?: readonly PortMappingInput[] | undefined
  readonly labels?: Readonly<Record<string, string>> | undefined
  readonly annotations?: Readonly<Record<string, string>> | undefined
  readonly linux?: LinuxPodSandboxConfigInput | null | undefined
}

export interface RunPodSandboxRequest {
  readonly config: PodSandboxConfig | null
  readonly runtimeHandler: string
}

export interface RunPodSandboxRequestInput {
  readonly config?: PodSandboxConfigInput | null | undefined
  readonly runtimeHandler?: string | undefined
}

export interface RunPodSandboxResponse {
  readonly podSandboxId: string
}

export interface RunPodSandboxResponseInput {
  readonly podSandboxId?: string | undefined
}

export interface StopPodSandboxRequest {
  readonly podSandboxId: string
}

export interface StopPodSandboxRequestInput {
  readonly podSandboxId?: string | undefined
}

export type StopPodSandboxResponse = Readonly<Record<string, never>>

export type StopPodSandboxResponseInput = Readonly<Record<string, never>>

export interface RemovePodSandboxRequest {
  readonly podSandboxId: string
}

export interface RemovePodSandboxRequestInput {
  readonly podSandboxId?: string | undefined
}

export type RemovePodSandboxResponse = Readonly<Record<string, never>>

export type RemovePodSandboxResponseInput = Readonly<Record<string, never>>

export interface PodSandboxStatusRequest {
  readonly podSandboxId: string
  readonly verbose: boolean
}

export interface PodSandboxStatusRequestInput {
  readonly podSandboxId?: string | undefined
  readonly verbose?: boolean | undefined
}

export interface PodIP {
  readonly ip: string
}

export interface PodIPInput {
  readonly ip?: string | undefined
}

export interface PodSandboxNetworkStatus {
  readonly ip: string
  readonly additionalIps: readonly PodIP[]
}

export interface PodSandboxNetworkStatusInput {
  readonly ip?: string | undefined
  readonly additionalIps?: readonly PodIPInput[] | undefined
}

export interface Namespace {
  readonly options: NamespaceOption | null
}

export interface NamespaceInput {
  readonly options?: NamespaceOptionInput | null | undefined
}

export interface LinuxPodSandboxStatus {
  readonly namespaces: Namespace | null
}

export interface LinuxPodSandboxStatusInput {
  readonly namespaces?: NamespaceInput | null | undefined
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

export interface PodSandboxStatusInput {
  readonly id?: string | undefined
  readonly metadata?: PodSandboxMetadataInput | null | undefined
  readonly state?: PodSandboxState | undefined
  readonly createdAt?: number | undefined
  readonly network?: PodSandboxNetworkStatusInput | null | undefined
  readonly linux?: LinuxPodSandboxStatusInput | null | undefined
  readonly labels?: Readonly<Record<string, string>> | undefined
  readonly annotations?: Readonly<Record<string, string>> | undefined
  readonly runtimeHandler?: string | undefined
}

export interface PodSandboxStatusResponse {
  readonly status: PodSandboxStatus | null
  readonly info: Readonly<Record<string, string>>
  readonly containersStatuses: readonly ContainerStatus[]
  readonly timestamp: number
}

export interface PodSandboxStatusResponseInput {
  readonly status?: PodSandboxStatusInput | null | undefined
  readonly info?: Readonly<Record<string, string>> | undefined
  readonly containersStatuses?: readonly ContainerStatusInput[] | undefined
  readonly timestamp?: number | undefined
}

export interface PodSandboxStateValue {
  readonly state: PodSandboxState
}

export interface PodSandboxStateValueInput {
  readonly state?: PodSandboxState | undefined
}

export interface PodSandboxFilter {
  readonly id: string
  readonly state: PodSandboxStateValue | null
  readonly labelSelector: Readonly<Record<string, string>>
}

export interface PodSandboxFilterInput {
  readonly id?: string | undefined
  readonly state?: PodSandboxStateValueInput | null | undefined
  readonly labelSelector?: Readonly<Record<string, string>> | undefined
}

export interface ListPodSandboxRequest {
  readonly filter: PodSandboxFilter | null
}

export interface ListPodSandboxRequestInput {
  readonly filter?: PodSandboxFilterInput | null | undefined
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

export interface PodSandboxInput {
  readonly id?: string | undefined
  readonly metadata?: PodSandboxMetadataInput | null | undefined
  readonly state?: PodSandboxState | undefined
  readonly createdAt?: number | undefined
  readonly labels?: Readonly<Record<string, string>> | undefined
  readonly annotations?: Readonly<Record<string, string>> | undefined
  readonly runtimeHandler?: string | undefined
}

export interface ListPodSandboxResponse {
  readonly items: readonly PodSandbox[]
}

export interface ListPodSandboxResponseInput {
  readonly items?: readonly PodSandboxInput[] | undefined
}

export interface PodSandboxStatsRequest {
  readonly podSandboxId: string
}

export interface PodSandboxStatsRequestInput {
  readonly podSandboxId?: string | undefined
}

export interface PodSandboxStatsResponse {
  readonly stats: PodSandboxStats | null
}

export interface PodSandboxStatsResponseInput {
  readonly stats?: PodSandboxStatsInput | null | undefined
}

export interface PodSandboxStatsFilter {
  readonly id: string
  readonly labelSelector: Readonly<Record<string, string>>
}

export interface PodSandboxStatsFilterInput {
  readonly id?: string | undefined
  readonly labelSelector?: Readonly<Record<string, string>> | undefined
}

export interface ListPodSandboxStatsRequest {
  readonly filter: PodSandboxStatsFilter | null
}

export interface ListPodSandboxStatsRequestInput {
  readonly filter?: PodSandboxStatsFilterInput | null | undefined
}

export interface ListPodSandboxStatsResponse {
  readonly stats: readonly PodSandboxStats[]
}

export interface ListPodSandboxStatsResponseInput {
  readonly stats?: readonly PodSandboxStatsInput[] | undefined
}

export interface PodSandboxAttributes {
  readonly id: string
  readonly metadata: PodSandboxMetadata | null
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}

export interface PodSandboxAttributesInput {
  readonly id?: string | undefined
  readonly metadata?: PodSandboxMetadataInput | null | undefined
  readonly labels?: Readonly<Record<string, string>> | undefined
  readonly annotations?: Readonly<Record<string, string>> | undefined
}

export interface PodSandboxStats {
  readonly attributes: PodSandboxAttributes | null
  readonly linux: LinuxPodSandboxStats | null
}

export interface PodSandboxStatsInput {
  readonly attributes?: PodSandboxAttributesInput | null | undefined
  readonly linux?: LinuxPodSandboxStatsInput | null | undefined
}

export interface LinuxPodSandboxStats {
  readonly cpu: CpuUsage | null
  readonly memory: MemoryUsage | null
  readonly network: NetworkUsage | null
  readonly process: ProcessUsage | null
  readonly containers: readonly ContainerStats[]
  readonly io: IoUsage | null
}

export interface LinuxPodSandboxStatsInput {
  readonly cpu?: CpuUsageInput | null | undefined
  readonly memory?: MemoryUsageInput | null | undefined
  readonly network?: NetworkUsageInput | null | undefined
  readonly process?: ProcessUsageInput | null | undefined
  readonly containers?: readonly ContainerStatsInput[] | undefined
  readonly io?: IoUsageInput | null | undefined
}

export interface NetworkUsage {
  readonly timestamp: number
  readonly defaultInterface: NetworkInterfaceUsage | null
  readonly interfaces: readonly NetworkInterfaceUsage[]
}

export interface NetworkUsageInput {
  readonly timestamp?: number | undefined
  readonly defaultInterface?: NetworkInterfaceUsageInput | null | undefined
  readonly interfaces?: readonly NetworkInterfaceUsageInput[] | undefined
}

export interface NetworkInterfaceUsage {
  readonly name: string
  readonly rxBytes: UInt64Value | null
  readonly rxErrors: UInt64Value | null
  readonly txBytes: UInt64Value | null
  readonly txErrors: UInt64Value | null
}

export interface NetworkInterfaceUsageInput {
  readonly name?: string | undefined
  readonly rxBytes?: UInt64ValueInput | null | undefined
  readonly rxErrors?: UInt64ValueInput | null | undefined
  readonly txBytes?: UInt64ValueInput | null | undefined
  readonly txErrors?: UInt64ValueInput | null | undefined
}

export interface ProcessUsage {
  readonly timestamp: number
  readonly processCount: UInt64Value | null
}

export interface ProcessUsageInput {
  readonly timestamp?: number | undefined
  readonly processCount?: UInt64ValueInput | null | undefined
}

export interface ImageSpec {
  readonly image: string
  readonly annotations: Readonly<Record<string, string>>
  readonly userSpecifiedImage: string
  readonly runtimeHandler: string
  readonly imageRef: string
}

export interface ImageSpecInput {
  readonly image?: string | undefined
  readonly annotations?: Readonly<Record<string, string>> | undefined
  readonly userSpecifiedImage?: string | undefined
  readonly runtimeHandler?: string | undefined
  readonly imageRef?: string | undefined
}

export interface KeyValue {
  readonly key: string
  readonly value: Buffer
}

export interface KeyValueInput {
  readonly key?: string | undefined
  readonly value?: Uint8Array | undefined
}

export interface LinuxContainerResources {
  readonly cpuPeriod: number
  readonly cpuQuota: number
  readonly cpuShares: number
  readonly memoryLimitInBytes: number
  readonly oomScoreAdj: number
  readonly cpusetCpus: string
  readonly cpusetMems: string
  readonly hugepageLimits: readonly HugepageLimit[]
  readonly unified: Readonly<Record<string, string>>
  readonly memorySwapLimitInBytes: number
}

export interface LinuxContainerResourcesInput {
  readonly cpuPeriod?: number | undefined
  readonly cpuQuota?: number | undefined
  readonly cpuShares?: number | undefined
  readonly memoryLimitInBytes?: number | undefined
  readonly oomScoreAdj?: number | undefined
  readonly cpusetCpus?: string | undefined
  readonly cpusetMems?: string | undefined
  readonly hugepageLimits?: readonly HugepageLimitInput[] | undefined
  readonly unified?: Readonly<Record<string, string>> | undefined
  readonly memorySwapLimitInBytes?: number | undefined
}

export interface HugepageLimit {
  readonly pageSize: string
  readonly limit: number
}

export interface HugepageLimitInput {
  readonly pageSize?: string | undefined
  readonly limit?: number | undefined
}

export interface SELinuxOption {
  readonly user: string
  readonly role: string
  readonly type: string
  readonly level: string
}

export interface SELinuxOptionInput {
  readonly user?: string | undefined
  readonly role?: string | undefined
  readonly type?: string | undefined
  readonly level?: string | undefined
}

export interface Capability {
  readonly addCapabilities: readonly string[]
  readonly dropCapabilities: readonly string[]
  readonly addAmbientCapabilities: readonly string[]
}

export interface CapabilityInput {
  readonly addCapabilities?: readonly string[] | undefined
  readonly dropCapabilities?: readonly string[] | undefined
  readonly addAmbientCapabilities?: readonly string[] | undefined
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
  readonly seccompProfilePath: string
}

export interface LinuxContainerSecurityContextInput {
  readonly capabilities?: CapabilityInput | null | undefined
  readonly privileged?: boolean | undefined
  readonly namespaceOptions?: NamespaceOptionInput | null | undefined
  readonly selinuxOptions?: SELinuxOptionInput | null | undefined
  readonly runAsUser?: Int64ValueInput | null | undefined
  readonly runAsGroup?: Int64ValueInput | null | undefined
  readonly runAsUsername?: string | undefined
  readonly readonlyRootfs?: boolean | undefined
  readonly supplementalGroups?: readonly number[] | undefined
  readonly supplementalGroupsPolicy?: SupplementalGroupsPolicy | undefined
  readonly noNewPrivs?: boolean | undefined
  readonly maskedPaths?: readonly string[] | undefined
  readonly readonlyPaths?: readonly string[] | undefined
  readonly seccomp?: SecurityProfileInput | null | undefined
  readonly apparmor?: SecurityProfileInput | null | undefined
  readonly apparmorProfile?: string | undefined
  readonly seccompProfilePath?: string | undefined
}

export interface LinuxContainerConfig {
  readonly resources: LinuxContainerResources | null
  readonly securityContext: LinuxContainerSecurityContext | null
}

export interface LinuxContainerConfigInput {
  readonly resources?: LinuxContainerResourcesInput | null | undefined
  readonly securityContext?: LinuxContainerSecurityContextInput | null | undefined
}

export interface LinuxContainerUser {
  readonly uid: number
  readonly gid: number
  readonly supplementalGroups: readonly number[]
}

export interface LinuxContainerUserInput {
  readonly uid?: number | undefined
  readonly gid?: number | undefined
  readonly supplementalGroups?: readonly number[] | undefined
}

export interface ContainerMetadata {
  readonly name: string
  readonly attempt: number
}

export interface ContainerMetadataInput {
  readonly name?: string | undefined
  readonly attempt?: number | undefined
}

export interface Device {
  readonly containerPath: string
  readonly hostPath: string
  readonly permissions: string
}

export interface DeviceInput {
  readonly containerPath?: string | undefined
  readonly hostPath?: string | undefined
  readonly permissions?: string | undefined
}

export interface CDIDevice {
  readonly name: string
}

export interface CDIDeviceInput {
  readonly name?: string | undefined
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
  readonly CDIDevices: readonly CDIDevice[]
  readonly stopSignal: Signal
}

export interface ContainerConfigInput {
  readonly metadata?: ContainerMetadataInput | null | undefined
  readonly image?: ImageSpecInput | null | undefined
  readonly command?: readonly string[] | undefined
  readonly args?: readonly string[] | undefined
  readonly workingDir?: string | undefined
  readonly envs?: readonly KeyValueInput[] | undefined
  readonly mounts?: readonly MountInput[] | undefined
  readonly devices?: readonly DeviceInput[] | undefined
  readonly labels?: Readonly<Record<string, string>> | undefined
  readonly annotations?: Readonly<Record<string, string>> | undefined
  readonly logPath?: string | undefined
  readonly stdin?: boolean | undefined
  readonly stdinOnce?: boolean | undefined
  readonly tty?: boolean | undefined
  readonly linux?: LinuxContainerConfigInput | null | undefined
  readonly CDIDevices?: readonly CDIDeviceInput[] | undefined
  readonly stopSignal?: Signal | undefined
}

export interface CreateContainerRequest {
  readonly podSandboxId: string
  readonly config: ContainerConfig | null
  readonly sandboxConfig: PodSandboxConfig | null
}

export interface CreateContainerRequestInput {
  readonly podSandboxId?: string | undefined
  readonly config?: ContainerConfigInput | null | undefined
  readonly sandboxConfig?: PodSandboxConfigInput | null | undefined
}

export interface CreateContainerResponse {
  readonly containerId: string
}

export interface CreateContainerResponseInput {
  readonly containerId?: string | undefined
}

export interface StartContainerRequest {
  readonly containerId: string
}

export interface StartContainerRequestInput {
  readonly containerId?: string | undefined
}

export type StartContainerResponse = Readonly<Record<string, never>>

export type StartContainerResponseInput = Readonly<Record<string, never>>

export interface StopContainerRequest {
  readonly containerId: string
  readonly timeout: number
}

export interface StopContainerRequestInput {
  readonly containerId?: string | undefined
  readonly timeout?: number | undefined
}

export type StopContainerResponse = Readonly<Record<string, never>>

export type StopContainerResponseInput = Readonly<Record<string, never>>

export interface RemoveContainerRequest {
  readonly containerId: string
}

export interface RemoveContainerRequestInput {
  readonly containerId?: string | undefined
}

export type RemoveContainerResponse = Readonly<Record<string, never>>

export type RemoveContainerResponseInput = Readonly<Record<string, never>>

export interface ContainerStateValue {
  readonly state: ContainerState
}

export interface ContainerStateValueInput {
  readonly state?: ContainerState | undefined
}

export interface ContainerFilter {
  readonly id: string
  readonly state: ContainerStateValue | null
  readonly podSandboxId: string
  readonly labelSelector: Readonly<Record<string, string>>
}

export interface ContainerFilterInput {
  readonly id?: string | undefined
  readonly state?: ContainerStateValueInput | null | undefined
  readonly podSandboxId?: string | undefined
  readonly labelSelector?: Readonly<Record<string, string>> | undefined
}

export interface ListContainersRequest {
  readonly filter: ContainerFilter | null
}

export interface ListContainersRequestInput {
  readonly filter?: ContainerFilterInput | null | undefined
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

export interface ContainerInput {
  readonly id?: string | undefined
  readonly podSandboxId?: string | undefined
  readonly metadata?: ContainerMetadataInput | null | undefined
  readonly image?: ImageSpecInput | null | undefined
  readonly imageRef?: string | undefined
  readonly state?: ContainerState | undefined
  readonly createdAt?: number | undefined
  readonly labels?: Readonly<Record<string, string>> | undefined
  readonly annotations?: Readonly<Record<string, string>> | undefined
  readonly imageId?: string | undefined
}

export interface ListContainersResponse {
  readonly containers: readonly Container[]
}

export interface ListContainersResponseInput {
  readonly containers?: readonly ContainerInput[] | undefined
}

export interface ContainerStatusRequest {
  readonly containerId: string
  readonly verbose: boolean
}

export interface ContainerStatusRequestInput {
  readonly containerId?: string | undefined
  readonly verbose?: boolean | undefined
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

export interface ContainerStatusInput {
  readonly id?: string | undefined
  readonly metadata?: ContainerMetadataInput | null | undefined
  readonly state?: ContainerState | undefined
  readonly createdAt?: number | undefined
  readonly startedAt?: number | undefined
  readonly finishedAt?: number | undefined
  readonly exitCode?: number | undefined
  readonly image?: ImageSpecInput | null | undefined
  readonly imageRef?: string | undefined
  readonly reason?: string | undefined
  readonly message?: string | undefined
  readonly labels?: Readonly<Record<string, string>> | undefined
  readonly annotations?: Readonly<Record<string, string>> | undefined
  readonly mounts?: readonly MountInput[] | undefined
  readonly logPath?: string | undefined
  readonly resources?: ContainerResourcesInput | null | undefined
  readonly imageId?: string | undefined
  readonly user?: ContainerUserInput | null | undefined
  readonly stopSignal?: Signal | undefined
}

export interface ContainerStatusResponse {
  readonly status: ContainerStatus | null
  readonly info: Readonly<Record<string, string>>
}

export interface ContainerStatusResponseInput {
  readonly status?: ContainerStatusInput | null | undefined
  readonly info?: Readonly<Record<string, string>> | undefined
}

export interface ContainerResources {
  readonly linux: LinuxContainerResources | null
}

export interface ContainerResourcesInput {
  readonly linux?: LinuxContainerResourcesInput | null | undefined
}

export interface ContainerUser {
  readonly linux: LinuxContainerUser | null
}

export interface ContainerUserInput {
  readonly linux?: LinuxContainerUserInput | null | undefined
}

export interface UpdateContainerResourcesRequest {
  readonly containerId: string
  readonly linux: LinuxContainerResources | null
  readonly annotations: Readonly<Record<string, string>>
}

export interface UpdateContainerResourcesRequestInput {
  readonly containerId?: string | undefined
  readonly linux?: LinuxContainerResourcesInput | null | undefined
  readonly annotations?: Readonly<Record<string, string>> | undefined
}

export type UpdateContainerResourcesResponse = Readonly<Record<string, never>>

export type UpdateContainerResourcesResponseInput = Readonly<Record<string, never>>

export interface ExecSyncRequest {
  readonly containerId: string
  readonly cmd: readonly string[]
  readonly timeout: number
}

export interface ExecSyncRequestInput {
  readonly containerId?: string | undefined
  readonly cmd?: readonly string[] | undefined
  readonly timeout?: number | undefined
}

export interface ExecSyncResponse {
  readonly stdout: Buffer
  readonly stderr: Buffer
  readonly exitCode: number
}

export interface ExecSyncResponseInput {
  readonly stdout?: Uint8Array | undefined
  readonly stderr?: Uint8Array | undefined
  readonly exitCode?: number | undefined
}

export interface ExecRequest {
  readonly containerId: string
  readonly cmd: readonly string[]
  readonly tty: boolean
  readonly stdin: boolean
  readonly stdout: boolean
  readonly stderr: boolean
}

export interface ExecRequestInput {
  readonly containerId?: string | undefined
  readonly cmd?: readonly string[] | undefined
  readonly tty?: boolean | undefined
  readonly stdin?: boolean | undefined
  readonly stdout?: boolean | undefined
  readonly stderr?: boolean | undefined
}

export interface ExecResponse {
  readonly url: string
}

export interface ExecResponseInput {
  readonly url?: string | undefined
}

export interface AttachRequest {
  readonly containerId: string
  readonly stdin: boolean
  readonly tty: boolean
  readonly stdout: boolean
  readonly stderr: boolean
}

export interface AttachRequestInput {
  readonly containerId?: string | undefined
  readonly stdin?: boolean | undefined
  readonly tty?: boolean | undefined
  readonly stdout?: boolean | undefined
  readonly stderr?: boolean | undefined
}

export interface AttachResponse {
  readonly url: string
}

export interface AttachResponseInput {
  readonly url?: string | undefined
}

export interface PortForwardRequest {
  readonly podSandboxId: string
  readonly port: readonly number[]
}

export interface PortForwardRequestInput {
  readonly podSandboxId?: string | undefined
  readonly port?: readonly number[] | undefined
}

export interface PortForwardResponse {
  readonly url: string
}

export interface PortForwardResponseInput {
  readonly url?: string | undefined
}

export interface ImageFilter {
  readonly image: ImageSpec | null
}

export interface ImageFilterInput {
  readonly image?: ImageSpecInput | null | undefined
}

export interface ListImagesRequest {
  readonly filter: ImageFilter | null
}

export interface ListImagesRequestInput {
  readonly filter?: ImageFilterInput | null | undefined
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

export interface ImageInput {
  readonly id?: string | undefined
  readonly repoTags?: readonly string[] | undefined
  readonly repoDigests?: readonly string[] | undefined
  readonly size?: number | undefined
  readonly uid?: Int64ValueInput | null | undefined
  readonly username?: string | undefined
  readonly spec?: ImageSpecInput | null | undefined
  readonly pinned?: boolean | undefined
}

export interface ListImagesResponse {
  readonly images: readonly Image[]
}

export interface ListImagesResponseInput {
  readonly images?: readonly ImageInput[] | undefined
}

export interface ImageStatusRequest {
  readonly image: ImageSpec | null
  readonly verbose: boolean
}

export interface ImageStatusRequestInput {
  readonly image?: ImageSpecInput | null | undefined
  readonly verbose?: boolean | undefined
}

export interface ImageStatusResponse {
  readonly image: Image | null
  readonly info: Readonly<Record<string, string>>
}

export interface ImageStatusResponseInput {
  readonly image?: ImageInput | null | undefined
  readonly info?: Readonly<Record<string, string>> | undefined
}

export interface AuthConfig {
  readonly username: string
  readonly password: string
  readonly auth: string
  readonly serverAddress: string
  readonly identityToken: string
  readonly registryToken: string
}

export interface AuthConfigInput {
  readonly username?: string | undefined
  readonly password?: string | undefined
  readonly auth?: string | undefined
  readonly serverAddress?: string | undefined
  readonly identityToken?: string | undefined
  readonly registryToken?: string | undefined
}

export interface PullImageRequest {
  readonly image: ImageSpec | null
  readonly auth: AuthConfig | null
  readonly sandboxConfig: PodSandboxConfig | null
}

export interface PullImageRequestInput {
  readonly image?: ImageSpecInput | null | undefined
  readonly auth?: AuthConfigInput | null | undefined
  readonly sandboxConfig?: PodSandboxConfigInput | null | undefined
}

export interface PullImageResponse {
  readonly imageRef: string
}

export interface PullImageResponseInput {
  readonly imageRef?: string | undefined
}

export interface RemoveImageRequest {
  readonly image: ImageSpec | null
}

export interface RemoveImageRequestInput {
  readonly image?: ImageSpecInput | null | undefined
}

export type RemoveImageResponse = Readonly<Record<string, never>>

export type RemoveImageResponseInput = Readonly<Record<string, never>>

export interface NetworkConfig {
  readonly podCidr: string
}

export interface NetworkConfigInput {
  readonly podCidr?: string | undefined
}

export interface RuntimeConfig {
  readonly networkConfig: NetworkConfig | null
}

export interface RuntimeConfigInput {
  readonly networkConfig?: NetworkConfigInput | null | undefined
}

export interface UpdateRuntimeConfigRequest {
  readonly runtimeConfig: RuntimeConfig | null
}

export interface UpdateRuntimeConfigRequestInput {
  readonly runtimeConfig?: RuntimeConfigInput | null | undefined
}

export type UpdateRuntimeConfigResponse = Readonly<Record<string, never>>

export type UpdateRuntimeConfigResponseInput = Readonly<Record<string, never>>

export interface RuntimeCondition {
  readonly type: string
  readonly status: boolean
  readonly reason: string
  readonly message: string
}

export interface RuntimeConditionInput {
  readonly type?: string | undefined
  readonly status?: boolean | undefined
  readonly reason?: string | undefined
  readonly message?: string | undefined
}

export interface RuntimeStatus {
  readonly conditions: readonly RuntimeCondition[]
}

export interface RuntimeStatusInput {
  readonly conditions?: readonly RuntimeConditionInput[] | undefined
}

export interface StatusRequest {
  readonly verbose: boolean
}

export interface StatusRequestInput {
  readonly verbose?: boolean | undefined
}

export interface RuntimeHandlerFeatures {
  readonly recursiveReadOnlyMounts: boolean
  readonly userNamespaces: boolean
}

export interface RuntimeHandlerFeaturesInput {
  readonly recursiveReadOnlyMounts?: boolean | undefined
  readonly userNamespaces?: boolean | undefined
}

export interface RuntimeHandler {
  readonly name: string
  readonly features: RuntimeHandlerFeatures | null
}

export interface RuntimeHandlerInput {
  readonly name?: string | undefined
  readonly features?: RuntimeHandlerFeaturesInput | null | undefined
}

export interface RuntimeFeatures {
  readonly supplementalGroupsPolicy: boolean
  readonly userNamespacesHostNetwork: boolean
  readonly mountOptions: boolean
}

export interface RuntimeFeaturesInput {
  readonly supplementalGroupsPolicy?: boolean | undefined
  readonly userNamespacesHostNetwork?: boolean | undefined
  readonly mountOptions?: boolean | undefined
}

export interface StatusResponse {
  readonly status: RuntimeStatus | null
  readonly info: Readonly<Record<string, string>>
  readonly runtimeHandlers: readonly RuntimeHandler[]
  readonly features: RuntimeFeatures | null
}

export interface StatusResponseInput {
  readonly status?: RuntimeStatusInput | null | undefined
  readonly info?: Readonly<Record<string, string>> | undefined
  readonly runtimeHandlers?: readonly RuntimeHandlerInput[] | undefined
  readonly features?: RuntimeFeaturesInput | null | undefined
}

export type ImageFsInfoRequest = Readonly<Record<string, never>>

export type ImageFsInfoRequestInput = Readonly<Record<string, never>>

export interface UInt64Value {
  readonly value: number
}

export interface UInt64ValueInput {
  readonly value?: number | undefined
}

export interface FilesystemIdentifier {
  readonly mountpoint: string
}

export interface FilesystemIdentifierInput {
  readonly mountpoint?: string | undefined
}

export interface FilesystemUsage {
  readonly timestamp: number
  readonly fsId: FilesystemIdentifier | null
  readonly usedBytes: UInt64Value | null
  readonly inodesUsed: UInt64Value | null
}

export interface FilesystemUsageInput {
  readonly timestamp?: number | undefined
  readonly fsId?: FilesystemIdentifierInput | null | undefined
  readonly usedBytes?: UInt64ValueInput | null | undefined
  readonly inodesUsed?: UInt64ValueInput | null | undefined
}

export interface ImageFsInfoResponse {
  readonly imageFilesystems: readonly FilesystemUsage[]
  readonly containerFilesystems: readonly FilesystemUsage[]
}

export interface ImageFsInfoResponseInput {
  readonly imageFilesystems?: readonly FilesystemUsageInput[] | undefined
  readonly containerFilesystems?: readonly FilesystemUsageInput[] | undefined
}

export interface ContainerStatsRequest {
  readonly containerId: string
}

export interface ContainerStatsRequestInput {
  readonly containerId?: string | undefined
}

export interface ContainerStatsResponse {
  readonly stats: ContainerStats | null
}

export interface ContainerStatsResponseInput {
  readonly stats?: ContainerStatsInput | null | undefined
}

export interface ListContainerStatsRequest {
  readonly filter: ContainerStatsFilter | null
}

export interface ListContainerStatsRequestInput {
  readonly filter?: ContainerStatsFilterInput | null | undefined
}

export interface ContainerStatsFilter {
  readonly id: string
  readonly podSandboxId: string
  readonly labelSelector: Readonly<Record<string, string>>
}

export interface ContainerStatsFilterInput {
  readonly id?: string | undefined
  readonly podSandboxId?: string | undefined
  readonly labelSelector?: Readonly<Record<string, string>> | undefined
}

export interface ListContainerStatsResponse {
  readonly stats: readonly ContainerStats[]
}

export interface ListContainerStatsResponseInput {
  readonly stats?: readonly ContainerStatsInput[] | undefined
}

export interface ContainerAttributes {
  readonly id: string
  readonly metadata: ContainerMetadata | null
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}

export interface ContainerAttributesInput {
  readonly id?: string | undefined
  readonly metadata?: ContainerMetadataInput | null | undefined
  readonly labels?: Readonly<Record<string, string>> | undefined
  readonly annotations?: Readonly<Record<string, string>> | undefined
}

export interface ContainerStats {
  readonly attributes: ContainerAttributes | null
  readonly cpu: CpuUsage | null
  readonly memory: MemoryUsage | null
  readonly writableLayer: FilesystemUsage | null
  readonly swap: SwapUsage | null
  readonly io: IoUsage | null
}

export interface ContainerStatsInput {
  readonly attributes?: ContainerAttributesInput | null | undefined
  readonly cpu?: CpuUsageInput | null | undefined
  readonly memory?: MemoryUsageInput | null | undefined
  readonly writableLayer?: FilesystemUsageInput | null | undefined
  readonly swap?: SwapUsageInput | null | undefined
  readonly io?: IoUsageInput | null | undefined
}

export interface PsiStats {
  readonly Full: PsiData | null
  readonly Some: PsiData | null
}

export interface PsiStatsInput {
  readonly Full?: PsiDataInput | null | undefined
  readonly Some?: PsiDataInput | null | undefined
}

export interface PsiData {
  readonly Total: number
  readonly Avg10: number
  readonly Avg60: number
  readonly Avg300: number
}

export interface PsiDataInput {
  readonly Total?: number | undefined
  readonly Avg10?: number | undefined
  readonly Avg60?: number | undefined
  readonly Avg300?: number | undefined
}

export interface CpuUsage {
  readonly timestamp: number
  readonly usageCoreNanoSeconds: UInt64Value | null
  readonly usageNanoCores: UInt64Value | null
  readonly psi: PsiStats | null
}

export interface CpuUsageInput {
  readonly timestamp?: number | undefined
  readonly usageCoreNanoSeconds?: UInt64ValueInput | null | undefined
  readonly usageNanoCores?: UInt64ValueInput | null | undefined
  readonly psi?: PsiStatsInput | null | undefined
}

export interface MemoryUsage {
  readonly timestamp: number
  readonly workingSetBytes: UInt64Value | null
  readonly availableBytes: UInt64Value | null
  readonly usageBytes: UInt64Value | null
  readonly rssBytes: UInt64Value | null
  readonly pageFaults: UInt64Value | null
  readonly majorPageFaults: UInt64Value | null
  readonly psi: PsiStats | null
}

export interface MemoryUsageInput {
  readonly timestamp?: number | undefined
  readonly workingSetBytes?: UInt64ValueInput | null | undefined
  readonly availableBytes?: UInt64ValueInput | null | undefined
  readonly usageBytes?: UInt64ValueInput | null | undefined
  readonly rssBytes?: UInt64ValueInput | null | undefined
  readonly pageFaults?: UInt64ValueInput | null | undefined
  readonly majorPageFaults?: UInt64ValueInput | null | undefined
  readonly psi?: PsiStatsInput | null | undefined
}

export interface IoUsage {
  readonly timestamp: number
  readonly psi: PsiStats | null
}

export interface IoUsageInput {
  readonly timestamp?: number | undefined
  readonly psi?: PsiStatsInput | null | undefined
}

export interface SwapUsage {
  readonly timestamp: number
  readonly swapAvailableBytes: UInt64Value | null
  readonly swapUsageBytes: UInt64Value | null
}

export interface SwapUsageInput {
  readonly timestamp?: number | undefined
  readonly swapAvailableBytes?: UInt64ValueInput | null | undefined
  readonly swapUsageBytes?: UInt64ValueInput | null | undefined
}

export interface ReopenContainerLogRequest {
  readonly containerId: string
}

export interface ReopenContainerLogRequestInput {
  readonly containerId?: string | undefined
}

export type ReopenContainerLogResponse = Readonly<Record<string, never>>

export type ReopenContainerLogResponseInput = Readonly<Record<string, never>>

export interface CheckpointContainerRequest {
  readonly containerId: string
  readonly location: string
  readonly timeout: number
}

export interface CheckpointContainerRequestInput {
  readonly containerId?: string | undefined
  readonly location?: string | undefined
  readonly timeout?: number | undefined
}

export type CheckpointContainerResponse = Readonly<Record<string, never>>

export type CheckpointContainerResponseInput = Readonly<Record<string, never>>

export type GetEventsRequest = Readonly<Record<string, never>>

export type GetEventsRequestInput = Readonly<Record<string, never>>

export interface ContainerEventResponse {
  readonly containerId: string
  readonly containerEventType: ContainerEventType
  readonly createdAt: number
  readonly podSandboxStatus: PodSandboxStatus | null
  readonly containersStatuses: readonly ContainerStatus[]
}

export interface ContainerEventResponseInput {
  readonly containerId?: string | undefined
  readonly containerEventType?: ContainerEventType | undefined
  readonly createdAt?: number | undefined
  readonly podSandboxStatus?: PodSandboxStatusInput | null | undefined
  readonly containersStatuses?: readonly ContainerStatusInput[] | undefined
}

export type ListMetricDescriptorsRequest = Readonly<Record<string, never>>

export type ListMetricDescriptorsRequestInput = Readonly<Record<string, never>>

export interface ListMetricDescriptorsResponse {
  readonly descriptors: readonly MetricDescriptor[]
}

export interface ListMetricDescriptorsResponseInput {
  readonly descriptors?: readonly MetricDescriptorInput[] | undefined
}

export interface MetricDescriptor {
  readonly name: string
  readonly help: string
  readonly labelKeys: readonly string[]
}

export interface MetricDescriptorInput {
  readonly name?: string | undefined
  readonly help?: string | undefined
  readonly labelKeys?: readonly string[] | undefined
}

export type ListPodSandboxMetricsRequest = Readonly<Record<string, never>>

export type ListPodSandboxMetricsRequestInput = Readonly<Record<string, never>>

export interface ListPodSandboxMetricsResponse {
  readonly podMetrics: readonly PodSandboxMetrics[]
}

export interface ListPodSandboxMetricsResponseInput {
  readonly podMetrics?: readonly PodSandboxMetricsInput[] | undefined
}

export interface PodSandboxMetrics {
  readonly podSandboxId: string
  readonly metrics: readonly Metric[]
  readonly containerMetrics: readonly ContainerMetrics[]
}

export interface PodSandboxMetricsInput {
  readonly podSandboxId?: string | undefined
  readonly metrics?: readonly MetricInput[] | undefined
  readonly containerMetrics?: readonly ContainerMetricsInput[] | undefined
}

export interface ContainerMetrics {
  readonly containerId: string
  readonly metrics: readonly Metric[]
}

export interface ContainerMetricsInput {
  readonly containerId?: string | undefined
  readonly metrics?: readonly MetricInput[] | undefined
}

export interface Metric {
  readonly name: string
  readonly timestamp: number
  readonly metricType: MetricType
  readonly labelValues: readonly string[]
  readonly value: UInt64Value | null
}

export interface MetricInput {
  readonly name?: string | undefined
  readonly timestamp?: number | undefined
  readonly metricType?: MetricType | undefined
  readonly labelValues?: readonly string[] | undefined
  readonly value?: UInt64ValueInput | null | undefined
}

export type RuntimeConfigRequest = Readonly<Record<string, never>>

export type RuntimeConfigRequestInput = Readonly<Record<string, never>>

export interface RuntimeConfigResponse {
  readonly linux: LinuxRuntimeConfiguration | null
}

export interface RuntimeConfigResponseInput {
  readonly linux?: LinuxRuntimeConfigurationInput | null | undefined
}

export interface LinuxRuntimeConfiguration {
  readonly cgroupDriver: CgroupDriver
}

export interface LinuxRuntimeConfigurationInput {
  readonly cgroupDriver?: CgroupDriver | undefined
}

export interface UpdatePodSandboxResourcesRequest {
  readonly podSandboxId: string
  readonly overhead: LinuxContainerResources | null
  readonly resources: LinuxContainerResources | null
}

export interface UpdatePodSandboxResourcesRequestInput {
  readonly podSandboxId?: string | undefined
  readonly overhead?: LinuxContainerResourcesInput | null | undefined
  readonly resources?: LinuxContainerResourcesInput | null | undefined
}

export type UpdatePodSandboxResourcesResponse = Readonly<Record<string, never>>

export type UpdatePodSandboxResourcesResponseInput = Readonly<Record<string, never>>

export type Protocol = 'TCP' | 'UDP' | 'SCTP'

export type MountPropagation = 'PROPAGATION_PRIVATE' | 'PROPAGATION_HOST_TO_CONTAINER' | 'PROPAGATION_BIDIRECTIONAL'

export type NamespaceMode = 'POD' | 'CONTAINER' | 'NODE' | 'TARGET'

export type SupplementalGroupsPolicy = 'Merge' | 'Strict'

export type PodSandboxState = 'SANDBOX_READY' | 'SANDBOX_NOTREADY'

export type Signal = 'SIGNAL_RUNTIME_DEFAULT' | 'SIGNAL_SIGABRT' | 'SIGNAL_SIGALRM' | 'SIGNAL_SIGBUS' | 'SIGNAL_SIGCHLD' | 'SIGNAL_SIGCLD' | 'SIGNAL_SIGCONT' | 'SIGNAL_SIGFPE' | 'SIGNAL_SIGHUP' | 'SIGNAL_SIGILL' | 'SIGNAL_SIGINT' | 'SIGNAL_SIGIO' | 'SIGNAL_SIGIOT' | 'SIGNAL_SIGKILL' | 'SIGNAL_SIGPIPE' | 'SIGNAL_SIGPOLL' | 'SIGNAL_SIGPROF' | 'SIGNAL_SIGPWR' | 'SIGNAL_SIGQUIT' | 'SIGNAL_SIGSEGV' | 'SIGNAL_SIGSTKFLT' | 'SIGNAL_SIGSTOP' | 'SIGNAL_SIGSYS' | 'SIGNAL_SIGTERM' | 'SIGNAL_SIGTRAP' | 'SIGNAL_SIGTSTP' | 'SIGNAL_SIGTTIN' | 'SIGNAL_SIGTTOU' | 'SIGNAL_SIGURG' | 'SIGNAL_SIGUSR1' | 'SIGNAL_SIGUSR2' | 'SIGNAL_SIGVTALRM' | 'SIGNAL_SIGWINCH' | 'SIGNAL_SIGXCPU' | 'SIGNAL_SIGXFSZ' | 'SIGNAL_SIGRTMIN' | 'SIGNAL_SIGRTMINPLUS1' | 'SIGNAL_SIGRTMINPLUS2' | 'SIGNAL_SIGRTMINPLUS3' | 'SIGNAL_SIGRTMINPLUS4' | 'SIGNAL_SIGRTMINPLUS5' | 'SIGNAL_SIGRTMINPLUS6' | 'SIGNAL_SIGRTMINPLUS7' | 'SIGNAL_SIGRTMINPLUS8' | 'SIGNAL_SIGRTMINPLUS9' | 'SIGNAL_SIGRTMINPLUS10' | 'SIGNAL_SIGRTMINPLUS11' | 'SIGNAL_SIGRTMINPLUS12' | 'SIGNAL_SIGRTMINPLUS13' | 'SIGNAL_SIGRTMINPLUS14' | 'SIGNAL_SIGRTMINPLUS15' | 'SIGNAL_SIGRTMAXMINUS14' | 'SIGNAL_SIGRTMAXMINUS13' | 'SIGNAL_SIGRTMAXMINUS12' | 'SIGNAL_SIGRTMAXMINUS11' | 'SIGNAL_SIGRTMAXMINUS10' | 'SIGNAL_SIGRTMAXMINUS9' | 'SIGNAL_SIGRTMAXMINUS8' | 'SIGNAL_SIGRTMAXMINUS7' | 'SIGNAL_SIGRTMAXMINUS6' | 'SIGNAL_SIGRTMAXMINUS5' | 'SIGNAL_SIGRTMAXMINUS4' | 'SIGNAL_SIGRTMAXMINUS3' | 'SIGNAL_SIGRTMAXMINUS2' | 'SIGNAL_SIGRTMAXMINUS1' | 'SIGNAL_SIGRTMAX'

export type ContainerState = 'CONTAINER_CREATED' | 'CONTAINER_RUNNING' | 'CONTAINER_EXITED' | 'CONTAINER_UNKNOWN'

export type ContainerEventType = 'CONTAINER_CREATED_EVENT' | 'CONTAINER_STARTED_EVENT' | 'CONTAINER_STOPPED_EVENT' | 'CONTAINER_DELETED_EVENT'

export type MetricType = 'COUNTER' | 'GAUGE'

export type CgroupDriver = 'SYSTEMD' | 'CGROUPFS'
