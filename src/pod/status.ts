/** PodStatus as Kubernetes writes it (core/v1), the fields that podd fills. Times are RFC 3339 text in UTC. */
export type PodPhase = 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown'

export type ConditionStatus = 'True' | 'False' | 'Unknown'

export interface PodCondition {
  readonly type: string
  readonly status: ConditionStatus
  readonly lastTransitionTime?: string
  readonly reason?: string
  readonly message?: string
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

/** One of the three is set. */
export interface ContainerState {
  readonly waiting?: { readonly reason?: string; readonly message?: string }
  readonly running?: { readonly startedAt?: string }
  readonly terminated?: ContainerStateTerminated
}

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
  readonly resources?: {
    readonly limits?: Readonly<Record<string, string>>
    readonly requests?: Readonly<Record<string, string>>
  }
}

export interface PodStatus {
  readonly phase: PodPhase
  readonly conditions: readonly PodCondition[]
  readonly reason?: string
  readonly message?: string
  readonly hostIP?: string
  readonly hostIPs?: readonly { readonly ip: string }[]
  readonly podIP?: string
  readonly podIPs?: readonly { readonly ip: string }[]
  readonly startTime?: string
  readonly qosClass: 'Guaranteed' | 'Burstable' | 'BestEffort'
  readonly initContainerStatuses?: readonly ContainerStatus[]
  readonly containerStatuses?: readonly ContainerStatus[]
  readonly ephemeralContainerStatuses?: readonly ContainerStatus[]
}
