import { PoddError } from '../../base/errors.ts'
import type { PodUid } from '../../pod/values/ids.ts'
import type { QosClass } from '../../pod/spec/qos.ts'
import type { PodCgroupResources } from '../../translate/resources/resources.ts'

/** A cgroup could not be made, set or removed (`CGROUP`). */
export class CgroupError extends PoddError {
  constructor(message: string, cause: unknown, hint?: string) {
    super('CGROUP', message, { cause, hint })
  }
}

/** Which pod's cgroup is meant. */
export interface PodCgroup {
  readonly uid: PodUid
  readonly qosClass: QosClass
}

/** The CPU shares of the levels above the pods. */
export interface QosShares {
  /** Of all pods together, against the rest of the host. */
  readonly kubepods: number
  /** From burstableShares (translate/resources/resources.ts). */
  readonly burstable: number
}

/**
 * The cgroups that pods live in: `<root>/kubepods[/burstable|/besteffort]/pod<uid>` in every hierarchy, as the
 * kubelet lays them out (`cm/pod_container_manager_linux.go`, `cm/qos_container_manager_linux.go`, 1.36).
 * All methods but the readers throw CgroupError.
 */
export interface PodCgroups {
  /** Makes the levels above the pods, or brings their shares up to date. */
  ensureQosTree(shares: QosShares): Promise<void>
  /** Makes a pod's cgroup, or sets the one there is to these resources. */
  ensurePod(pod: PodCgroup, resources: PodCgroupResources): Promise<void>
  /**
   * Ends every process that is left in the pod's cgroup and removes it from all hierarchies. Gives the paths
   * that would not go; none where it was gone already.
   */
  removePod(uid: PodUid): Promise<readonly string[]>
  /**
   * The pods that have a cgroup in any hierarchy. A kubelet or another podd with the same cgroup root has its
   * pods here too.
   */
  listPods(): readonly PodCgroup[]
  /** Processes killed in the pod's cgroup for their memory, but for those of what lives: see countOomKills (oom-kills.ts). */
  countOomKills(pod: PodCgroup, liveIds: readonly string[]): number | undefined
  /** Whether processes of these containers live in the pod's cgroup; undefined where it has none. */
  hasProcesses(pod: PodCgroup, containerIds: readonly string[]): boolean | undefined
  /** Removes the levels above the pods, as far as they are empty; gives what is left. */
  removeQosTree(): Promise<readonly string[]>
  /** What CRI's `cgroup_parent` has to say for the pod. */
  parentOf(pod: PodCgroup): string
}
