import type { ContainerId } from '../../pod/values/ids.ts'
import type { ObservedPod } from '../../pod/state/observed.ts'
import type { PodRecord } from '../../pod/state/pod-record.ts'
import type { ResourceLists } from '../../pod/spec/pod-resources.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import type { Waiting } from './pod-action.ts'
import type { ResizeRefusal } from './resize.ts'
import type { BackoffLimits } from './restart-policy.ts'

export type ProbeKind = 'liveness' | 'readiness' | 'startup'
export type ProbeVerdict = 'success' | 'failure' | 'unknown'

/** The newest verdict on a container; undefined where the probe hasn't given one. */
export type ProbeVerdicts = (kind: ProbeKind, id: ContainerId) => ProbeVerdict | undefined

/** A start that failed: not again before `untilMs`, and what is shown until then. */
export interface Hold {
  readonly untilMs: number
  readonly waiting: Waiting
  /** The image that can't be had, where that is why. */
  readonly image?: string
}

/** The key under which a hold on the sandbox stands; no container can be called so. */
export const sandboxHold = ''

/** Everything that decides what a pod needs. Equal facts give equal plans. */
export interface PodFacts {
  readonly pod: Pod
  readonly observed: ObservedPod
  readonly history: PodRecord['containers']
  readonly probes: ProbeVerdicts
  /** The hash that a container made from this spec would bear. */
  readonly specHash: (container: ContainerSpec) => string
  /** Whether the image of a changed container is at hand (see PodAction `fetch-image`). */
  readonly imageReady: (container: ContainerSpec) => boolean
  /** Whether it is being fetched. */
  readonly isFetching: (container: ContainerSpec) => boolean
  /** What a container that is made now would lack beside its image, a ConfigMap, say; undefined where nothing. */
  readonly missingFor: (container: ContainerSpec) => string | undefined
  /** By container name: what failed a moment ago and isn't to be tried again yet. `sandboxHold` stands for the sandbox. */
  readonly holds: ReadonlyMap<string, Hold>
  /** Containers to be recreated because of a restart request. */
  readonly restartRequested?: ReadonlySet<ContainerId> | undefined
  /** Containers from before a restart of all: they count as never made (see restart-all.ts). */
  readonly restartAll?: ReadonlySet<ContainerId> | undefined
  /** Why the host has no room for what running containers shall get. */
  readonly resizeRefusal?: ResizeRefusal | undefined
  /** The pod-level cpu and memory that the pod has; undefined where they never changed. */
  readonly podResources?: ResourceLists | undefined
  readonly nowMs: number
  /** Another one after each boot of the host. */
  readonly bootId: string
  readonly limits: BackoffLimits
}
