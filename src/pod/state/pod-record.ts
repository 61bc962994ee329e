import type { JsonObject } from '../../base/json.ts'
import type { PodOwner, SourceName } from '../objects/document.ts'
import type { ContainerId, PodUid } from '../values/ids.ts'
import type { PodClasses, ResourceLists } from '../schema/pod-resources.ts'
import type { ConditionStatus, LinuxContainerUser } from './status.ts'

/**
 * The version of the record's form. A new optional field needs no new version: an older podd keeps fields that it does
 * not know. Anything that an older podd would misread (a renamed field, a new value of a known field) needs one, with a
 * migration (`src/store/pod-records.ts`).
 */
export const podRecordVersion = 1

/**
 * A pod's record on disk: what was requested and what happened. The runtime is the truth about what runs. Written
 * before the action it records, replaced atomically, versioned.
 */
export interface PodRecord {
  readonly version: typeof podRecordVersion
  readonly uid: PodUid
  readonly namespace: string
  readonly name: string
  readonly source: SourceName
  readonly path: string
  /** The workload from which its manifest was expanded; absent for a document that is the pod itself. */
  readonly owner?: PodOwner | undefined
  /** The applied manifest, without defaults: they are filled in on every reading. */
  readonly manifest: JsonObject
  /** Ephemeral containers that were added to the pod, beside those of its manifest: they go with it. */
  readonly debuggers?: readonly JsonObject[] | undefined
  readonly acceptedAtMs: number
  /**
   * Incremented with each change of the spec; absent means 1, as in records of older podds (see
   * decide/status/derive-status.ts).
   */
  readonly generation?: number | undefined
  /** When podd began to start it (status.startTime). */
  readonly startedAtMs?: number | undefined
  /** How many sandboxes were attempted for it: the attempt number of the next one. */
  readonly sandboxAttempts?: number | undefined
  /** The boot of the host in which the last of them was attempted; absent in records of older podds. */
  readonly sandboxBootId?: string | undefined
  /** The addresses that its last sandbox had. */
  readonly podIps?: readonly string[] | undefined
  /** A container of it was given variables of Services. */
  readonly usesServices?: boolean | undefined
  /** What its classes added when it was admitted. */
  readonly classes?: PodClasses | undefined
  /** The number of OOM kills in its cgroup when a container of it last ended; absent where they were not counted. */
  readonly oomKills?: number | undefined
  readonly conditions: Readonly<Record<string, ConditionRecord>>
  readonly containers: Readonly<Record<string, ContainerHistory>>
  /** By container id: by how much the wall clock was set since the runtime took the container's times. */
  readonly clockMoves?: Readonly<Record<string, ClockMove>> | undefined
  readonly ending?: PodEnding | undefined
  /**
   * The allocated cpu and memory of containers, by name, and under `/pod` of the pod itself, while a resize is not
   * admitted yet (the kubelet's allocated_pods_state, 1.36). Absent where they equal the manifest.
   */
  readonly allocated?: Readonly<Record<string, ResourceLists>> | undefined
  /**
   * The applied pod-level cpu and memory, where they have changed since the pod was created (the kubelet's
   * actuated_pods_state, 1.36).
   */
  readonly podResources?: ResourceLists | undefined
  /** Containers whose preStop hook was started: it runs once, whatever happens to podd. */
  readonly preStopBegun?: readonly ContainerId[] | undefined
  /** Those whose hook the runtime keeps until the container ends, so that podd can wait for it. */
  readonly preStopHeld?: readonly ContainerId[] | undefined
  /** Containers whose postStart hook, which the runtime keeps, is about to run, runs, or has an unprocessed result. */
  readonly postStartsDue?: readonly ContainerId[] | undefined
  /** Containers with a pending restart request, or stopped for a change, that have no successor yet. */
  readonly restartRequested?: readonly ContainerId[] | undefined
  /**
   * Containers that were, or are about to be, stopped to be started again (a failed probe, a dead sandbox), and have no
   * successor yet: they run again even where they exit with 0 and only a failure would restart them.
   */
  readonly restartsDue?: readonly ContainerId[] | undefined
  /** Containers from before a restart of all that have no successor yet. */
  readonly restartAll?: readonly ContainerId[] | undefined
  /** Set when a termination for `deadline` or `evicted`, or a rejection, has made the pod Failed permanently. */
  readonly failed?:
    | {
        readonly reason: string
        readonly message: string
        /** It was never admitted: the next podd decides again. */
        readonly admission?: boolean | undefined
        /**
         * As in PodEnding. `admission` is set with it, so that a podd that doesn't know this field starts the pod
         * again.
         */
        readonly until?: EvictionEnd | undefined
      }
    | undefined
}

/** Milliseconds. The end is moved by what came after it. */
export interface ClockMove {
  readonly startMs: number
  readonly endMs: number
}

/** The record of one container name of a pod. */
export interface ContainerHistory {
  /** The end of the newest exited container. */
  readonly ended?: EndedContainer | undefined
  /** The end before that. */
  readonly endedBefore?: EndedContainer | undefined
  readonly backoff?: BackoffEntry | undefined
  /** The image that its manifest was changed to; until that is available, the container runs with the previous one. */
  readonly awaitedImage?: string | undefined
  /** The newest container whose startup probe has passed. */
  readonly startedUp?: ContainerId | undefined
  /** The container that was last found ready. */
  readonly ready?: ContainerId | undefined
  /** The cpu and memory to which a container was resized. */
  readonly resized?: { readonly containerId: ContainerId; readonly resources: ResourceLists } | undefined
}

/** The end of one container, kept after the container is removed from the runtime. Times are wall milliseconds. */
export interface EndedContainer {
  readonly containerId: ContainerId
  readonly restartCount: number
  readonly exitCode: number
  /** Taken from an event: the runtime does not report the exit yet, and may report more of it. */
  readonly provisional?: boolean | undefined
  readonly reason: string
  readonly message: string
  readonly startedAtMs: number | undefined
  readonly finishedAtMs: number
  readonly image: string
  readonly imageId: string
  /** As in ObservedContainer; absent in records of older podds. */
  readonly user?: LinuxContainerUser | undefined
  readonly stopSignal?: string | undefined
}

/** The state of a container's crash backoff (see decide/plan/backoff.ts). */
export interface BackoffEntry {
  /** What caused the back-off; another image or other resources reset it. */
  readonly key: string
  /** Milliseconds from this start's exit to the next restart. */
  readonly delayMs: number
  readonly updatedAtMs: number
  /** The boot of the host in which it arose; absent in entries of older podds. */
  readonly bootId?: string | undefined
}

/** Why a pod is terminated, and by when. */
export interface PodEnding {
  /** `removed` and `replaced` pods are deleted; the others stay as Failed until their manifest is removed. */
  readonly cause: 'removed' | 'replaced' | 'deadline' | 'evicted' | 'orphaned'
  readonly reason: string
  readonly message: string
  readonly requestedAtMs: number
  readonly graceSeconds: number
  /** Of an evicted pod: when it is started again, as a new pod; absent for never. */
  readonly until?: EvictionEnd | undefined
  /** Somebody asked for it over the API: a Job counts its pod as failed. */
  readonly asked?: AskedEnd | undefined
}

/** How a client had a pod ended: a DELETE, or an Eviction. */
export type AskedEnd = 'deleted' | 'evicted'

/**
 * When an evicted pod is started again: once the node's pressure is over, or the shutdown was cancelled or the host has
 * booted.
 */
export type EvictionEnd = 'pressure-ends' | 'shutdown-ends'

export interface ConditionRecord {
  readonly status: ConditionStatus
  readonly atMs: number
}
