/* PodStatus as Kubernetes writes it (core/v1), the fields that podd fills. Times are RFC 3339 text in UTC. */
import type { QosClass } from '../schema/pod-resources.ts'

export type PodPhase = 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown'

export interface PodStatus {
  /** The generation of the pod to which this status refers. */
  readonly observedGeneration?: number
  readonly phase: PodPhase
  readonly conditions: readonly PodCondition[]
  readonly reason?: string
  readonly message?: string
  readonly hostIP?: string
  readonly hostIPs?: readonly { readonly ip: string }[]
  readonly podIP?: string
  readonly podIPs?: readonly { readonly ip: string }[]
  readonly startTime?: string
  readonly qosClass: QosClass
  /** The allocated pod-level resources. */
  readonly allocatedResources?: Readonly<Record<string, string>>
  /** The actual pod-level resources. */
  readonly resources?: StatusResources
  readonly initContainerStatuses?: readonly ContainerStatus[]
  readonly containerStatuses?: readonly ContainerStatus[]
  readonly ephemeralContainerStatuses?: readonly ContainerStatus[]
}

/** The type of the condition of pods of which another version is wanted than the one that runs; False. */
export const upToDateCondition = 'podd.dev/UpToDate'

export interface PodCondition {
  readonly type: string
  readonly status: ConditionStatus
  readonly lastTransitionTime?: string
  readonly reason?: string
  readonly message?: string
  /** The generation of the pod to which it refers. */
  readonly observedGeneration?: number
}

export type ConditionStatus = 'True' | 'False' | 'Unknown'

export interface ContainerStatus {
  readonly name: string
  readonly state: ContainerState
  readonly lastState: ContainerState
  readonly ready: boolean
  readonly restartCount: number
  readonly image: string
  readonly imageID: string
  /** `<runtime>://<id>` */
  readonly containerID?: string
  readonly started?: boolean
  readonly allocatedResources?: Readonly<Record<string, string>>
  readonly resources?: StatusResources
  readonly volumeMounts?: readonly VolumeMountStatus[]
  /** Absent where the runtime doesn't report it: containerd does from 2.0 on. */
  readonly user?: { readonly linux: LinuxContainerUser }
  /** Absent where the runtime doesn't report it: containerd does from 2.3 on. */
  readonly stopSignal?: string
}

/** One of the three is set. */
export interface ContainerState {
  readonly waiting?: { readonly reason?: string; readonly message?: string }
  readonly running?: { readonly startedAt?: string }
  readonly terminated?: ContainerStateTerminated
}

export interface ContainerStateTerminated {
  readonly exitCode: number
  readonly signal?: number
  readonly reason?: string
  readonly message?: string
  readonly startedAt?: string
  readonly finishedAt?: string
  readonly containerID?: string
}

export interface VolumeMountStatus {
  readonly name: string
  readonly mountPath: string
  readonly readOnly?: boolean
  /** Of what is read-only. */
  readonly recursiveReadOnly?: 'Enabled' | 'Disabled'
}

/** The user of a container's first process at its start. */
export interface LinuxContainerUser {
  readonly uid: number
  readonly gid: number
  /** Absent where there are none. */
  readonly supplementalGroups?: readonly number[]
}

export interface StatusResources {
  readonly limits?: Readonly<Record<string, string>>
  readonly requests?: Readonly<Record<string, string>>
}
