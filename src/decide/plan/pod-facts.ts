/* What the deciders get to know of a pod, as plain data. */
import type { ClockReading } from '../../base/clock.ts'
import type { ResourceLists } from '../../pod/schema/pod-resources.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { ObservedPod } from '../../pod/state/observed.ts'
import type { PodRecord } from '../../pod/state/pod-record.ts'
import type { ContainerId } from '../../pod/values/ids.ts'
import type { ContainerGarbagePolicy } from '../node/plan-container-garbage.ts'
import type { BackoffLimits, Retries } from './backoff.ts'
import type { Waiting } from './pod-action.ts'
import type { ResizeRefusal, ResizeState } from './resize.ts'

/** A container's probes, by their fields' names without `Probe`. */
export type ProbeKind = 'liveness' | 'readiness' | 'startup'
export type ProbeVerdict = 'success' | 'failure' | 'unknown'

/** The newest verdicts on each container; absent where a probe hasn't given one. */
export type ProbeVerdicts = Readonly<
  Record<ContainerId, { readonly [Kind in ProbeKind]?: ProbeVerdict | undefined }>
>

/** The facts about one container name of a pod beside its observation and record. */
export interface ContainerFacts {
  /** The hash that a container created now would get; absent where no container of the name is alive. */
  readonly specHash?: string | undefined
  /** Whether the image of its spec is present, checked for its next start (see PodAction `fetch-image`). */
  readonly imageReady: boolean
  /** Whether that is being fetched. */
  readonly isFetching: boolean
  /**
   * What is missing for a container created now besides its image, a ConfigMap for example. Absent where nothing is, and
   * of containers that are not to be recreated (see selectRecreations).
   */
  readonly missing?: string | undefined
}

/**
 * Everything that decides what a pod needs, as plain data. Equal facts give equal plans; logged facts can be replayed
 * (facts-json.ts).
 */
export interface PodFacts {
  readonly pod: Pod
  readonly observed: ObservedPod
  readonly history: PodRecord['containers']
  readonly probes: ProbeVerdicts
  /** A row for each container of the pod, by name. */
  readonly containerFacts: Readonly<Record<string, ContainerFacts>>
  /** Starts that failed recently and aren't retried yet. */
  readonly retries: Retries
  /** Why the pod gets no new sandbox, and these containers aren't created; what runs is supervised. */
  readonly blocked?: { readonly message: string; readonly containers: readonly string[] } | undefined
  /** Containers to be recreated because of a restart request. */
  readonly restartRequested?: ReadonlySet<ContainerId> | undefined
  /** Containers that were stopped to be started again, whatever their exit code (see PodRecord). */
  readonly restartsDue?: ReadonlySet<ContainerId> | undefined
  /** Containers from before a restart of all: they count as never created (see restart-request.ts). */
  readonly restartAll?: ReadonlySet<ContainerId> | undefined
  /** Containers whose postStart hook is to be run, or waited for (see PodRecord). */
  readonly postStartsDue?: readonly ContainerId[] | undefined
  /** Why the host has no room for the resize of running containers. */
  readonly resizeRefusal?: ResizeRefusal | undefined
  /** The pod-level cpu and memory that the pod has; undefined where they never changed. */
  readonly podResources?: ResourceLists | undefined
  /** The cgroup of the running pod was removed: its limits no longer apply. */
  readonly isCgroupRemoved?: boolean | undefined
  readonly nowMs: number
  /** Changes with each boot of the host. */
  readonly bootId: string
  readonly limits: BackoffLimits
  /** Undefined for the kubelet's defaults. */
  readonly containerPolicy?: ContainerGarbagePolicy | undefined
  /** Containers that the node's garbage collection wants removed; running ones are left alone. */
  readonly condemned?: readonly string[] | undefined
}

/** The facts from which a pod's status is derived. */
export interface StatusFacts {
  readonly pod: Pod
  readonly record: PodRecord
  readonly observed: ObservedPod
  readonly probes: ProbeVerdicts
  /** By container name: why it isn't running, where known. */
  readonly waiting: ReadonlyMap<string, Waiting>
  /** By container name: the progress of its image pull, where one is in flight. */
  readonly pulling?: ReadonlyMap<string, string> | undefined
  /** Why the pod as a whole may not run for now. */
  readonly blocked: (Waiting & { readonly isForbidden?: boolean }) | undefined
  /** `containerd`: the scheme of container ids. */
  readonly runtimeName: string
  readonly hostIps: readonly string[]
  /** Whether its runtime handler supports recursive read-only mounts; absent while unknown. */
  readonly recursiveReadOnly?: boolean
  /** Why a container keeps running by an earlier version of the manifest; absent where none does. */
  readonly outdated?: string | undefined
  /** The state of its resize, if there is one. */
  readonly resize?: ResizeState | undefined
  /** Containers whose postStart hook is in flight: until it is done they aren't shown as running. */
  readonly postStarts?: ReadonlySet<ContainerId>
  readonly nowMs: number
  /** What is later than this was taken by another setting of the wall clock: see `showTime`. */
  readonly clock: ClockReading
}
