import { PoddError } from '../../base/errors.ts'
import type { PodUid } from '../../pod/values/ids.ts'
import type { QosClass } from '../../pod/schema/pod-resources.ts'
import type { PodCgroupResources } from '../../translate/resources.ts'

/** A cgroup could not be made, set or removed (`CGROUP`). */
export class CgroupError extends PoddError {
  constructor(message: string, cause: unknown, hint?: string) {
    super('CGROUP', message, { cause, hint })
  }
}

/** Identifies a pod's cgroup. */
export interface PodCgroup {
  readonly uid: PodUid
  readonly qosClass: QosClass
}

/** The CPU shares of the levels above the pods. */
export interface QosShares {
  /** Of all pods together, relative to the rest of the host. */
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
  /** Creates the levels above the pods, or updates their shares. */
  ensureQosTree(shares: QosShares): Promise<void>
  /** Creates a pod's cgroup, or updates its resources. */
  ensurePod(pod: PodCgroup, resources: PodCgroupResources): Promise<void>
  /**
   * Kills every process left in the pod's cgroup and removes it from all hierarchies. Returns the paths that could not
   * be removed.
   */
  removePod(uid: PodUid): Promise<readonly string[]>
  /**
   * The pods with a cgroup in any hierarchy, including those of a kubelet or another podd with the same cgroup root.
   */
  listPods(): readonly PodCgroup[]
  /** The OOM kills in the pod's cgroup, without those of live containers: see countOomKills (oom-kills.ts). */
  countOomKills(pod: PodCgroup, liveIds: readonly string[]): number | undefined
  /** Whether the kernel has killed for memory in this container: see hasOomKills (oom-kills.ts). */
  hasOomKills(uid: PodUid, containerId: string): boolean
  /** Whether processes of these containers live in the pod's cgroup; undefined where it has none. */
  hasProcesses(pod: PodCgroup, containerIds: readonly string[]): boolean | undefined
  /**
   * Whether somebody has removed the cgroup of a pod that was made, from a hierarchy that limits it. False where the
   * hierarchy itself is away. Throws the system's error where that can't be read.
   */
  isRemoved(pod: PodCgroup): boolean
  /** Kills the processes of these containers, sandboxes too, in the pod's cgroup; returns how many there were. */
  killProcesses(pod: PodCgroup, containerIds: readonly string[]): number
  /** Removes the empty levels above the pods; returns the remaining ones. */
  removeQosTree(): Promise<readonly string[]>
  /** The value of CRI's `cgroup_parent` for the pod. */
  parentOf(pod: PodCgroup): string
}
