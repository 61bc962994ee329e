import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import type { PoddConfig } from '../../config/options.ts'
import { CgroupfsPodCgroups } from '../../host/cgroups/cgroupfs.ts'
import { hasPodsIn, readCgroupChoice, saveCgroupChoice } from '../../host/cgroups/layout.ts'
import type { CgroupChoice, CgroupSystem, PodCgroups } from '../../host/cgroups/layout.ts'
import { createSystemdCaller } from '../../host/cgroups/systemd-bus.ts'
import { SystemdPodCgroups } from '../../host/cgroups/systemd.ts'
import { computeQosClass } from '../../pod/schema/pod-resources.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { PodUid } from '../../pod/values/ids.ts'
import type { StateReport } from '../../store/state-report.ts'
import {
  burstableMilliCpu,
  milliCpuToShares,
  largerPodResources,
  podCgroupResources,
} from '../../translate/resources.ts'
import type { ResourceFacts } from '../../translate/resources.ts'
import type { PodHostCgroups } from '../pod/host.ts'

interface CgroupTreesOptions {
  readonly config: PoddConfig
  readonly system: CgroupSystem
  /** `askCgroupDriver` waits for the runtime. */
  readonly runtime: { askCgroupDriver(): Promise<CgroupChoice['driver']> }
  readonly report: StateReport
  readonly clock: Clock
  readonly logger: Logger
}

/** The trees of cgroups that pods may be in: the one that is used, and one that an earlier podd used. */
export class CgroupTrees {
  readonly #options: CgroupTreesOptions

  constructor(options: CgroupTreesOptions) {
    this.#options = options
  }

  of({ root, driver }: CgroupChoice): PodCgroups {
    const { clock, system } = this.#options
    const where = { system, root, clock }
    return driver === 'systemd'
      ? new SystemdPodCgroups(where, createSystemdCaller(clock))
      : new CgroupfsPodCgroups(where)
  }

  /** Opens the tree to use, and records it. Removes an earlier one, as far as it is empty. */
  async open(): Promise<PodCgroups> {
    const { config, logger, report, runtime } = this.#options
    const root = rootOf(config)
    const driver = await runtime.askCgroupDriver()
    const before = readCgroupChoice(config.rootDir)
    if (before !== undefined && (before.root !== root || before.driver !== driver)) {
      // It has no pods left, or it would still be in use.
      const left = await this.of(before).removeQosTree()
      if (left.length > 0) logger.warn({ path: left.join(', ') }, 'the old cgroups are still in use')
    }
    try {
      saveCgroupChoice(config.rootDir, { root, driver }, report)
    } catch (error) {
      // A full disk must not prevent pods from being terminated, which frees space.
      logger.warn({ err: error, path: config.rootDir }, 'cannot record which cgroups are used')
    }
    return this.of({ root, driver })
  }
}

/** The effective config, and a warning about it. */
export interface KeptCgroups {
  readonly config: PoddConfig
  readonly warning: string | undefined
}

/**
 * Keeps the cgroups' root and driver while pods exist, whose cgroups would otherwise be in another place. A changed
 * setting takes effect when no pod is left, after a reboot at the latest. With an external runtime that runtime's
 * driver is used.
 */
export function keepCgroups(config: PoddConfig, system: CgroupSystem): KeptCgroups {
  const kept = readCgroupChoice(config.rootDir)
  if (kept === undefined || !hasPodsIn(kept, system, config.rootDir)) return { config, warning: undefined }
  const isOwn = config.containerRuntimeEndpoint === 'embedded'
  const followed = {
    ...config,
    cgroupRoot: kept.root,
    cgroupDriver: isOwn ? kept.driver : config.cgroupDriver,
  }
  const changes = [
    ...(rootOf(config) === kept.root ? [] : [`cgroupRoot ${rootOf(config)}, not ${kept.root}`]),
    ...(!isOwn || config.cgroupDriver === 'auto' || config.cgroupDriver === kept.driver
      ? []
      : [`cgroupDriver ${config.cgroupDriver}, not ${kept.driver}`]),
  ]
  const warning = `pods live in the cgroups of before; this takes effect when they are gone: ${changes.join('; ')}`
  return { config: followed, warning: changes.length === 0 ? undefined : warning }
}

/** The configured root, `/` for the host's own. */
function rootOf({ cgroupRoot }: Pick<PoddConfig, 'cgroupRoot'>): string {
  return cgroupRoot ?? '/'
}

export interface PodCgroupsOptions {
  /** Called when a pod needs it, and again while that fails: only the runtime may know its driver. */
  readonly openTree: () => Promise<PodCgroups>
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
export function createPodCgroups(options: PodCgroupsOptions): PodHostCgroups {
  const { livePods, resources, cpus, pidsLimit } = options
  let opening: Promise<PodCgroups> | undefined
  const openTree = async (): Promise<PodCgroups> => {
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
  const update = async (tree: PodCgroups, isDue: boolean): Promise<void> => {
    const wanted = milliCpuToShares(milliCpu)
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
