import type { ContainerId, SandboxId } from '../../pod/values/ids.ts'
import type { ObservedContainer } from '../../pod/state/observed.ts'
import type { BackoffEntry } from '../../pod/state/pod-record.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import type { ContainerResize, ResizeState } from './resize.ts'

export interface PodPlan {
  readonly actions: readonly PodAction[]
  /** When to run again without an event; undefined: only after an event. */
  readonly wakeAtMs: number | undefined
  /** By container name: what it waits for. */
  readonly waiting: ReadonlyMap<string, Waiting>
  /** By container name: the missing reference because of which the old container keeps running. */
  readonly blockedRestarts?: ReadonlyMap<string, string> | undefined
  /** Set where all containers are restarted: the earlier containers, to be recorded before any action. */
  readonly restartAll?: ReadonlySet<ContainerId> | undefined
  /** Containers that these actions stop to start them again: to be recorded right before (see PodRecord). */
  readonly restartsDue?: readonly ContainerId[] | undefined
  /** Its sandbox is gone, nothing of it runs or will run again, and it hasn't completed: it has failed. */
  readonly isLost?: boolean
  /** The state of the pod's resize; undefined while all containers have their wanted resources. */
  readonly resize?: ResizeState | undefined
}

/** One thing to do for a pod; control/pod/execute.ts maps each kind to its executor. */
export type PodAction =
  /** Stop all containers (sidecars last) and the sandboxes: the pod has finished, or its sandbox must be recreated. */
  | { readonly kind: 'stop-pod'; readonly reason: string }
  | { readonly kind: 'create-sandbox'; readonly attempt: number }
  | {
      readonly kind: 'stop-container'
      readonly container: ObservedContainer
      readonly cause: StopCause
      readonly message: string
    }
  | {
      readonly kind: 'start-container'
      readonly spec: ContainerSpec
      readonly role: 'init' | 'main' | 'ephemeral'
      readonly restartCount: number
      /** To be recorded before the start. */
      readonly backoff: BackoffEntry | undefined
      /** The image that its manifest names and that isn't present yet: `spec` has the previous one. */
      readonly awaitedImage?: string | undefined
    }
  /** An earlier podd started this container and did not see the end of its postStart hook. */
  | {
      readonly kind: 'finish-post-start'
      readonly container: ObservedContainer
      readonly spec: ContainerSpec
    }
  /**
   * A running container's image is to be changed: fetch the new one, and stop the old container only once it is
   * present.
   */
  | { readonly kind: 'fetch-image'; readonly spec: ContainerSpec }
  /**
   * Running containers get other resources, the pod's cgroup with them; with none, only the cgroup is updated after
   * containers were restarted for it.
   */
  | {
      readonly kind: 'resize-containers'
      readonly resizes: readonly ContainerResize[]
      /** Other cpu and memory for the pod itself, too. */
      readonly podLevel: boolean
    }
  | { readonly kind: 'remove-containers'; readonly ids: readonly ContainerId[] }
  | { readonly kind: 'remove-sandboxes'; readonly ids: readonly SandboxId[] }

/** Why a single container is stopped; determines the event's text and the grace period. */
export type StopCause = 'liveness' | 'startup' | 'changed' | 'requested' | 'unknown' | 'restart-all'

/** Why a container isn't running for now; Kubernetes' words. */
export interface Waiting {
  readonly reason: string
  readonly message: string
}

/** The kubelet's reason for containers of a pod that may not run for now (`pkg/kubelet/kubelet.go`, SyncPod, 1.36). */
export function blockedWaiting(message: string): Waiting {
  return { reason: 'Blocked', message }
}
