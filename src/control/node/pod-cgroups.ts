import type { PodCgroups as CgroupTree } from '../../host/cgroups/layout.ts'
import { computeQosClass } from '../../pod/schema/pod-resources.ts'
import type { PodUid } from '../../pod/values/ids.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import {
  burstableMilliCpu,
  burstableShares,
  largerPodResources,
  podCgroupResources,
} from '../../translate/resources.ts'
import type { ResourceFacts } from '../../translate/resources.ts'
import type { PodCgroups } from '../actions/pod-host.ts'

export interface PodCgroupsOptions {
  /** Called when a pod needs it, and again while that fails: only the runtime may know its driver. */
  readonly openTree: () => Promise<CgroupTree>
  /** The pods that hold resources, as they were admitted: read once, for those of an earlier podd. */
  readonly livePods: () => Iterable<readonly [PodUid, Pod]>
  readonly resources: ResourceFacts
  readonly cpus: number
  readonly pidsLimit: number | undefined
}

/**
 * The pods' cgroups. The common weight of the burstable pods follows the existing pods, whichever podd started them
 * (`cm/qos_container_manager_linux.go`, 1.36, which looks once a minute).
 */
export function createPodCgroups(options: PodCgroupsOptions): PodCgroups {
  const { livePods, resources, cpus, pidsLimit } = options
  let opening: Promise<CgroupTree> | undefined
  const openTree = async (): Promise<CgroupTree> => {
    opening ??= options.openTree()
    try {
      return await opening
    } catch (error) {
      opening = undefined
      throw error
    }
  }
  const made = new Set<string>()
  let burstable: number | undefined
  /** By pod: what each adds, so that a pod that comes or goes costs the same however many there are. */
  let requests: Map<PodUid, number> | undefined
  let milliCpu = 0
  const count = (uid: PodUid, added: number): void => {
    requests ??= new Map()
    milliCpu += added - (requests.get(uid) ?? 0)
    if (added === 0) requests.delete(uid)
    else requests.set(uid, added)
  }
  const update = async (tree: CgroupTree, isDue: boolean): Promise<void> => {
    const wanted = burstableShares(milliCpu)
    if (!isDue && wanted === burstable) return
    await tree.ensureQosTree({ kubepods: kubepodsShares(cpus), burstable: wanted })
    burstable = wanted
  }
  return {
    async ensure(uid, pod, before = pod) {
      const tree = await openTree()
      const cgroup = { uid, qosClass: computeQosClass(pod.spec) }
      if (requests === undefined)
        for (const [live, { spec }] of livePods()) count(live, burstableMilliCpu(spec))
      count(uid, burstableMilliCpu(pod.spec))
      await update(tree, !made.has(uid))
      made.add(uid)
      const [now, then] = [before, pod].map(({ spec }) => podCgroupResources(spec, resources, pidsLimit))
      if (now !== undefined && then !== undefined) await tree.ensurePod(cgroup, largerPodResources(now, then))
      return tree.parentOf(cgroup)
    },
    async countOomKills(uid, pod, liveIds) {
      const tree = await openTree()
      return tree.countOomKills({ uid, qosClass: computeQosClass(pod.spec) }, liveIds)
    },
    async hasOomKills(uid, containerId) {
      const tree = await openTree()
      return tree.hasOomKills(uid, containerId)
    },
    async hasProcesses(uid, pod, containerIds) {
      const tree = await openTree()
      return tree.hasProcesses({ uid, qosClass: computeQosClass(pod.spec) }, containerIds)
    },
    async isRemoved(uid, pod) {
      const tree = await openTree()
      return tree.isRemoved({ uid, qosClass: computeQosClass(pod.spec) })
    },
    async killProcesses(uid, pod, containerIds) {
      const tree = await openTree()
      return tree.killProcesses({ uid, qosClass: computeQosClass(pod.spec) }, containerIds)
    },
    async remove(uid) {
      made.delete(uid)
      if (requests !== undefined) count(uid, 0)
      const tree = await openTree()
      await tree.removePod(uid)
      // Until this podd has created a pod, an earlier podd's settings may stay.
      if (burstable !== undefined) await update(tree, false)
    },
  }
}

/** The kernel's default shares, for a host that runs only pods; the kubelet sets kubepods to the node's CPUs. */
function kubepodsShares(cpus: number): number {
  return Math.max(2, cpus * 1024)
}
