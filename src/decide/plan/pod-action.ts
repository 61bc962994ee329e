import type { ContainerId, SandboxId } from '../../pod/values/ids.ts'
import type { ObservedContainer } from '../../pod/state/observed.ts'
import type { BackoffEntry } from '../../pod/state/pod-record.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import type { ContainerResize, ResizeState } from './resize.ts'

/** Why a single container is stopped; picks the event's wording and the grace. */
export type StopCause = 'liveness' | 'startup' | 'changed' | 'requested' | 'unknown' | 'restart-all'

/** One thing to do for a pod; control/actions/execute-actions.ts maps each kind to what does it. */
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
      /** The image that its manifest names and that isn't there yet: `spec` has the one that it had before. */
      readonly awaitedImage?: string | undefined
    }
  /** An earlier podd started this container and did not see the end of its postStart hook. */
  | {
      readonly kind: 'finish-post-start'
      readonly container: ObservedContainer
      readonly spec: ContainerSpec
    }
  /** A running container's image is to be changed: begin to get the new one, and only when it is there stop the old. */
  | { readonly kind: 'fetch-image'; readonly spec: ContainerSpec }
  /**
   * Running containers get other resources, the pod's cgroup with them; with none, the cgroup alone is
   * brought in line after containers were restarted for it.
   */
  | {
      readonly kind: 'resize-containers'
      readonly resizes: readonly ContainerResize[]
      /** Other cpu and memory for the pod itself, too. */
      readonly podLevel: boolean
    }
  | { readonly kind: 'remove-containers'; readonly ids: readonly ContainerId[] }
  | { readonly kind: 'remove-sandboxes'; readonly ids: readonly SandboxId[] }

/** Why a container isn't running for now; Kubernetes' words. */
export interface Waiting {
  readonly reason: string
  readonly message: string
}

export interface PodPlan {
  readonly actions: readonly PodAction[]
  /** When to look again although nothing happened; undefined: only when something happens. */
  readonly wakeAtMs: number | undefined
  /** By container name: what it waits for. */
  readonly waiting: ReadonlyMap<string, Waiting>
  /** By container name: what a container to be recreated would lack, so that the old one keeps running. */
  readonly blockedRestarts?: ReadonlyMap<string, string> | undefined
  /** Set where all containers are restarted: those from before, to be recorded before anything is done. */
  readonly restartAll?: ReadonlySet<ContainerId> | undefined
  /** Its sandbox is gone, nothing of it runs or will run again, and it isn't through: it has failed. */
  readonly isLost?: boolean
  /** Where the pod's resize stands; undefined while all containers have what they shall have. */
  readonly resize?: ResizeState | undefined
}
