import type { JsonObject } from '../../base/json.ts'
import type { PodOwner, SourceName } from '../objects/document.ts'
import type { ContainerId, PodUid } from '../values/ids.ts'
import type { PodClasses } from '../spec/pod-classes.ts'
import type { ResourceLists } from '../spec/pod-resources.ts'
import type { ConditionStatus, LinuxContainerUser } from './status.ts'

/** How one container ended: kept when the runtime's own memory of it is removed. Times are wall milliseconds. */
export interface EndedContainer {
  readonly containerId: ContainerId
  readonly restartCount: number
  readonly exitCode: number
  /** Provisional, taken from an event: the runtime does not report the exit yet, and may report more of it. */
  readonly foretold?: boolean | undefined
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

/** Where a container's crash backoff stands (see decide/restart-policy.ts). */
export interface BackoffEntry {
  /** What caused the back-off; another image or other resources reset it. */
  readonly key: string
  readonly delayMs: number
  readonly updatedAtMs: number
  /** The boot of the host that it was earned in; absent in entries of older podds. */
  readonly bootId?: string | undefined
}

/** What podd remembers of one container name of a pod. */
export interface ContainerHistory {
  /** The newest container that is known to have ended. */
  readonly ended?: EndedContainer | undefined
  /** The one that ended before it. */
  readonly endedBefore?: EndedContainer | undefined
  readonly backoff?: BackoffEntry | undefined
  /** The image that its manifest was changed to; until that is available, the container runs with the previous one. */
  readonly awaitedImage?: string | undefined
  /** The newest container whose startup probe has passed. */
  readonly startedUp?: ContainerId | undefined
  /** The container that its readiness probe found ready, the last time. */
  readonly ready?: ContainerId | undefined
  /** The cpu and memory that a container was given after it was made. */
  readonly resized?: { readonly containerId: ContainerId; readonly resources: ResourceLists } | undefined
}

/** The pressure on the node that a pod was evicted for has gone; the shutdown is cancelled, or the host has booted. */
export type EvictionEnd = 'pressure-ends' | 'shutdown-ends'

/** Why a pod is being ended, and by when. */
export interface PodEnding {
  /** `removed` and `replaced` pods go away; the others stay, Failed, until their manifest goes. */
  readonly cause: 'removed' | 'replaced' | 'deadline' | 'evicted' | 'orphaned'
  readonly reason: string
  readonly message: string
  readonly requestedAtMs: number
  readonly graceSeconds: number
  /** Of an evicted pod: when it is started again, as a new pod; absent for never. */
  readonly until?: EvictionEnd | undefined
}

export interface ConditionRecord {
  readonly status: ConditionStatus
  readonly atMs: number
}

/**
 * The version of the record's form. A new optional field needs no new version: an older podd keeps fields that it
 * does not know. Anything that an older podd would misread (a field renamed, a new value of a known field) does, and
 * a migration with it (`src/store/pod-records.ts`).
 */
export const podRecordVersion = 1

/**
 * A pod as podd remembers it on disk: what was requested and what happened. What runs is the runtime's
 * to say. Written before the action it records, replaced atomically, versioned.
 */
export interface PodRecord {
  readonly version: typeof podRecordVersion
  readonly uid: PodUid
  readonly namespace: string
  readonly name: string
  readonly source: SourceName
  readonly path: string
  /** What its manifest was expanded from; absent where a document is the pod itself. */
  readonly owner?: PodOwner | undefined
  /** The applied manifest, without defaults: they are filled in again on every reading. */
  readonly manifest: JsonObject
  readonly acceptedAtMs: number
  /** One more for each change of the spec; absent stands for 1, as in records of older podds (see decide/pod-generation.ts). */
  readonly generation?: number | undefined
  /** When podd began to start it (status.startTime). */
  readonly startedAtMs?: number | undefined
  /** How many sandboxes were begun for it, with or without success: the number of the next one. */
  readonly sandboxAttempts?: number | undefined
  /** The boot of the host in which the last of them was begun; absent in records of older podds. */
  readonly sandboxBootId?: string | undefined
  /** The addresses that its last sandbox had. */
  readonly podIps?: readonly string[] | undefined
  /** What it took from its classes when it was admitted. */
  readonly classes?: PodClasses | undefined
  /** How often the kernel had killed in its cgroup for memory when a container of it last ended; absent where kills were not counted. */
  readonly oomKills?: number | undefined
  readonly conditions: Readonly<Record<string, ConditionRecord>>
  readonly containers: Readonly<Record<string, ContainerHistory>>
  readonly ending?: PodEnding | undefined
  /**
   * The cpu and memory that containers, by name, go on with, and under `/pod` the pod itself: their manifest asks for
   * more, and that was not admitted yet (the kubelet's allocated_pods_state, 1.36). Absent where they have all that the
   * manifest says.
   */
  readonly allocated?: Readonly<Record<string, ResourceLists>> | undefined
  /**
   * The pod-level cpu and memory that its cgroup was given, where they have changed since it was made (the kubelet's
   * actuated_pods_state, 1.36).
   */
  readonly podResources?: ResourceLists | undefined
  /** Containers whose preStop hook has been begun: it is run once, whatever happens to podd. */
  readonly preStopBegun?: readonly ContainerId[] | undefined
  /** Those of them whose hook the runtime holds until the container ends: it can be waited for. */
  readonly preStopHeld?: readonly ContainerId[] | undefined
  /** Containers whose postStart hook, which the runtime holds, is to run, or runs, or has an end that was not judged. */
  readonly postStartsDue?: readonly ContainerId[] | undefined
  /** Containers that somebody asked to be restarted, or that were stopped to be changed, and that have no successor yet. */
  readonly restartRequested?: readonly ContainerId[] | undefined
  /** Containers from before a restart of all that have no successor yet. */
  readonly restartAll?: readonly ContainerId[] | undefined
  /** Set when an ending for `deadline` or `evicted`, or a hard refusal, has made the pod Failed for good. */
  readonly failed?:
    | {
        readonly reason: string
        readonly message: string
        /** It was never admitted: the next podd decides again. */
        readonly admission?: boolean | undefined
        /** As in PodEnding. `admission` is set beside it, so that a podd that doesn't know it starts the pod again. */
        readonly until?: EvictionEnd | undefined
      }
    | undefined
}
