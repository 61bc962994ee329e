import { readIfExists } from '../../base/atomic-file.ts'
import type { Clock } from '../../base/clock.ts'
import { Semaphore } from '../../base/waits.ts'
import type { PodCgroups } from '../../host/cgroups/layout.ts'
import { isHostStopping } from '../../host/cgroups/systemd-bus.ts'
import { checkMountSharing } from '../../host/mounts.ts'
import type { HostShutdown } from '../../host/shutdown.ts'
import { whenThere } from '../../host/watch-names.ts'
import type { ContainerLogDirectories } from '../../logs/container-log-directories.ts'
import { objectKey } from '../../pod/objects/local-object.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import { computeQosClass } from '../../pod/schema/pod-resources.ts'
import type { ResourceList } from '../../pod/schema/pod-resources.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import { kindOfSource } from '../../pod/values/ids.ts'
import type { ContainerId, PodUid, SandboxId, SourceName } from '../../pod/values/ids.ts'
import type { RuntimeService } from '../../runtime/cri-runtime.ts'
import type { ExecLimits } from '../../translate/environment.ts'
import type { HostVolume } from '../../translate/mounts.ts'
import type { ResolvConf } from '../../translate/network.ts'
import { missingObject } from '../../translate/references.ts'
import {
  burstableMilliCpu,
  milliCpuToShares,
  largerPodResources,
  podCgroupResources,
} from '../../translate/resources.ts'
import type { ResourceFacts } from '../../translate/resources.ts'
import type { SecurityFacts, UserRange } from '../../translate/security-context.ts'
import { computeVolumeFiles } from '../../translate/volume-files.ts'
import { listClaimOwners } from '../../volumes/claims.ts'
import { measureDiskUsage, readInside } from '../../volumes/open-inside.ts'
import type { FsGroup } from '../../volumes/open-inside.ts'
import {
  claimUserRange,
  prepareTerminationLog,
  readTerminationLog,
  readEtcHosts,
  refreshEtcHosts,
  refreshResolvConf,
  removeResolvConf,
  removeTerminationLog,
  volumeDirectory,
  writeEtcHosts,
  writeResolvConf,
} from '../../volumes/pod-directory.ts'
import { prepareVolumes, teardownVolumes } from '../../volumes/prepare-volumes.ts'
import { bindSubPath, checkMountKinds, makeNestedMountPoint } from '../../volumes/sub-path.ts'
import type { SubPathMount } from '../../volumes/sub-path.ts'
import { checkHostPath } from '../../volumes/volume-plugins.ts'
import type { ImageArchives } from '../images/archives.ts'
import type { ObjectViews } from '../serving/object-store.ts'
import type { Hooks } from './hooks.ts'

/** All of the host that acting for a pod needs. */
export interface PodHost {
  readonly calls: RuntimeService
  readonly cgroups: ReturnType<typeof createPodCgroups>
  /** Kills the runtime's process that holds a sandbox and its containers; returns its pid, or undefined where there is none. */
  killShim(id: SandboxId): number | undefined
  readonly volumes: ReturnType<typeof createPodVolumes>
  readonly logs: Pick<
    ContainerLogDirectories,
    'directory' | 'prepare' | 'newestInstance' | 'link' | 'retainLinks' | 'remove' | 'tail' | 'removeAll'
  >
  readonly hooks: Hooks
  /** Tells whether a missing image is about to be imported. */
  readonly archives: Pick<ImageArchives, 'awaited' | 'prefer'>
  readonly instance: string
  readonly hostName: string
  /** What pods on the host's network see as /etc/hosts. */
  readHostsFile(): Promise<string>
  readResolver(): Promise<ResolvConf>
  /** Tells when the resolver may have changed, until the signal is aborted. */
  readonly followResolver: (onHint: () => void, signal: AbortSignal) => Promise<void>
  hostIps(): readonly string[]
  readonly shutdown: HostShutdown
  /** Another one after each boot. */
  readonly bootId: string
  /** SELinux is on. */
  readonly selinux: boolean
  readonly resources: ResourceFacts
  /** What the host gives pods, for references to limits that aren't set. */
  readonly capacity: ResourceList
  readonly execLimits: ExecLimits
  /** What pods refer to. */
  readonly objects: ObjectViews
  readonly security: SecurityFacts
  /** Path of a seccomp profile for sandboxes; undefined: they get the runtime's default. */
  readonly sandboxSeccompPath: () => string | undefined
}

interface VolumesInput {
  readonly uid: PodUid
  readonly pod: Pod
  readonly source: SourceName
  /** Hears of what a volume goes without. */
  readonly warn?: (message: string) => void
}

/** The pods' directories under `<root-dir>/pods`, and what is mounted from them. */
export function createPodVolumes(env: {
  readonly rootDir: string
  readonly resources: ResourceFacts
  readonly objects: ObjectViews
  readonly capacity: ResourceList
  readonly hostName: string
  readonly clock: Clock
}) {
  const { rootDir, resources, objects, capacity, hostName, clock } = env
  /** One resolv.conf is changed at a time. */
  const turn = new Semaphore(1)
  return {
    /** Makes the pod's volumes; again for one that has them changes nothing. Throws PoddError with the reason. */
    prepare({ uid, pod, source, warn }: VolumesInput): Promise<ReadonlyMap<string, HostVolume>> {
      const { namespace } = pod.metadata
      const seen = objects.seenBy(source)
      const fields = { pod, uid, nodeName: hostName, hostIps: [], podIps: [] }
      return prepareVolumes(pod.spec.volumes, {
        uid,
        namespace,
        rootDir,
        memoryBytes: podMemoryBytes(pod, resources),
        fsGroup: fsGroupOf(pod),
        files: (volume) => computeVolumeFiles(volume, { fields, capacity, objects: seen }),
        findClaim: (name) => {
          const owner = seen.sourceOf(objectKey('PersistentVolumeClaim', namespace, name))
          if (owner === undefined)
            throw missingObject(seen, { kind: 'PersistentVolumeClaim', namespace, name })
          return { source: owner, readsDataOf: objects.rules.policies[kindOfSource(owner)].readsObjectsOf }
        },
        warn: (volume, message) => warn?.(`volume "${volume}": ${message}`),
        nowMs: clock.wallMs(),
      })
    },
    /** The sources that own the data of claims, by the claims' keys, as far as there is a record of it. */
    listClaimOwners: () => listClaimOwners(rootDir),
    /** Whether its hostPath volumes are what they shall be; makes nothing. Throws PoddError with the reason. */
    async checkHostPaths({ spec }: Pod): Promise<void> {
      for (const volume of spec.volumes) await checkHostPath(volume)
    },
    /** Whether what a container mounts fits its image, by a process that runs of it. Throws PoddError with the reason. */
    checkMountKinds: ({ spec }: Pod, container: ContainerSpec, pid: number) =>
      checkMountKinds(container, spec.volumes, pid),
    /** Resolves when something is at this path of the host, as far as that can be noticed; rejects with the signal's reason. */
    whenThere,
    /** The text of a file in a volume that containers may have written; undefined where there is none. */
    readFile: readInside,
    /** The bytes of disk that an emptyDir takes. */
    measureEmptyDir: (uid: PodUid, volume: string) =>
      measureDiskUsage(volumeDirectory(rootDir, uid, 'empty-dir', volume)),
    /** Binds a part of a volume to a place of the pod's and gives that. Throws PoddError where it leads out or is missing. */
    bindSubPath: (mount: Omit<SubPathMount, 'rootDir'>) => bindSubPath({ rootDir, ...mount }),
    /** Makes the place where something is mounted inside a directory of files. Throws PoddError where it can't be. */
    makeMountPoint: makeNestedMountPoint,
    /** Throws PoddError where the host's mount at a path isn't shared as a container's mount of it needs. */
    checkMountSharing,
    /** Writes the pod's hosts file and gives its path. */
    writeHostsFile: (uid: PodUid, text: string) => writeEtcHosts(rootDir, uid, text),
    /** Its text; undefined where the pod has none. */
    lastHostsFile: (uid: PodUid) => readEtcHosts(rootDir, uid),
    /** Brings it up to date in place, where the pod has one; returns whether it has. */
    refreshHostsFile: (uid: PodUid, text: string) => refreshEtcHosts(rootDir, uid, text),
    /** Writes the pod's resolv.conf and gives its path. */
    writeResolvConf: (uid: PodUid, text: string) => turn.run(() => writeResolvConf(rootDir, uid, text)),
    /** Forgets it, for the containers of a new sandbox. */
    removeResolvConf: (uid: PodUid) => turn.run(() => removeResolvConf(rootDir, uid)),
    /** Brings it up to date in place, where the pod has one. */
    refreshResolvConf: (uid: PodUid, text: string) => turn.run(() => refreshResolvConf(rootDir, uid, text)),
    /** Makes the empty file that takes a container's termination message. */
    makeTerminationLog: (uid: PodUid, container: string, restartCount: number) =>
      prepareTerminationLog({ rootDir, uid, container, restartCount }),
    /** What a container wrote there, at most 4096 bytes; empty where it wrote nothing. */
    readTerminationLog: (uid: PodUid, container: string, restartCount: number) =>
      readTerminationLog({ rootDir, uid, container, restartCount }),
    removeTerminationLog: (uid: PodUid, container: string, restartCount: number) =>
      removeTerminationLog({ rootDir, uid, container, restartCount }),
    /** The host's users that are the pod's own; the same at each call. */
    userRange: (uid: PodUid): UserRange => claimUserRange(rootDir, uid),
    /** Unmounts and removes all of it. */
    teardown: (uid: PodUid) => teardownVolumes(rootDir, uid),
  }
}

function fsGroupOf(pod: Pod): FsGroup | undefined {
  const { fsGroup, fsGroupChangePolicy = 'Always' } = pod.spec.securityContext ?? {}
  return fsGroup === undefined ? undefined : { gid: fsGroup, changePolicy: fsGroupChangePolicy }
}

/**
 * The pod's memory limit (its cgroup's), if any; else the host's memory (`pkg/volume/emptydir/empty_dir.go`,
 * calculateEmptyDirMemorySize, 1.36).
 */
function podMemoryBytes(pod: Pod, facts: ResourceFacts): number {
  const { memoryLimitBytes } = podCgroupResources(pod.spec, facts, undefined)
  return Math.min(memoryLimitBytes ?? Infinity, facts.memoryCapacityBytes)
}

/** A small file of the host's, such as /etc/hosts; empty where there is none. */
export async function readIfThere(path: string): Promise<string> {
  return (await readIfExists(path)) ?? ''
}

/**
 * The pods' cgroups. The common weight of the burstable pods follows the existing pods, whichever podd started them
 * (`cm/qos_container_manager_linux.go`, 1.36, which looks once a minute).
 */
export function createPodCgroups(env: {
  /** Called when a pod needs it, and again while that fails: only the runtime may know its driver. */
  readonly openTree: () => Promise<PodCgroups>
  /** The pods that hold resources, as they were admitted: read once, for those of an earlier podd. */
  readonly livePods: () => Iterable<readonly [PodUid, Pod]>
  readonly resources: ResourceFacts
  readonly cpus: number
  readonly pidsLimit: number | undefined
}) {
  const { livePods, resources, cpus, pidsLimit } = env
  let opening: Promise<PodCgroups> | undefined
  const openTree = async (): Promise<PodCgroups> => {
    opening ??= env.openTree()
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
    // The kernel's default shares, for a host that runs only pods; the kubelet sets kubepods to the node's CPUs.
    await tree.ensureQosTree({ kubepods: Math.max(2, cpus * 1024), burstable: wanted })
    burstable = wanted
  }
  const cgroupOf = (uid: PodUid, pod: Pod) => ({ uid, qosClass: computeQosClass(pod.spec) })
  return {
    /**
     * Makes it, with the pod's resources; gives what CRI's cgroup_parent takes.
     * @param before the pod as its containers are now: the cgroup then has room for the larger of the two
     */
    async ensure(uid: PodUid, pod: Pod, before?: Pod): Promise<string> {
      const tree = await openTree()
      const cgroup = cgroupOf(uid, pod)
      if (requests === undefined)
        for (const [live, { spec }] of livePods()) count(live, burstableMilliCpu(spec))
      count(uid, burstableMilliCpu(pod.spec))
      await update(tree, !made.has(uid))
      made.add(uid)
      const [now, then] = [before ?? pod, pod].map(({ spec }) =>
        podCgroupResources(spec, resources, pidsLimit),
      )
      if (now !== undefined && then !== undefined) await tree.ensurePod(cgroup, largerPodResources(now, then))
      return tree.parentOf(cgroup)
    },
    /** How often the kernel has killed in it for memory, but for those (sandboxes, too) that live; undefined where that can't be known. */
    countOomKills: async (uid: PodUid, pod: Pod, liveIds: readonly string[]) =>
      (await openTree()).countOomKills(cgroupOf(uid, pod), liveIds),
    /** Whether the kernel has killed for memory in this container, which has just ended. */
    hasOomKills: async (uid: PodUid, containerId: ContainerId) =>
      (await openTree()).hasOomKills(uid, containerId),
    /** Whether processes of these containers live in it; undefined where that can't be known. */
    hasProcesses: async (uid: PodUid, pod: Pod, containerIds: readonly ContainerId[]) =>
      (await openTree()).hasProcesses(cgroupOf(uid, pod), containerIds),
    /** Whether somebody has removed it, of a pod that runs; false where that can't be known. Throws what reading it throws. */
    isRemoved: async (uid: PodUid, pod: Pod) => (await openTree()).isRemoved(cgroupOf(uid, pod)),
    /** Kills the processes of these containers and sandboxes, past the runtime; returns how many there were. */
    killProcesses: async (uid: PodUid, pod: Pod, ids: readonly string[]) =>
      (await openTree()).killProcesses(cgroupOf(uid, pod), ids),
    /** Removes it and what lingers in it. */
    async remove(uid: PodUid): Promise<void> {
      made.delete(uid)
      if (requests !== undefined) count(uid, 0)
      const tree = await openTree()
      await tree.removePod(uid)
      // Until this podd has created a pod, an earlier podd's settings may stay.
      try {
        if (burstable !== undefined) await update(tree, false)
      } catch (error) {
        // The pod's own cgroup is gone, and what the others get does not matter any more.
        if (!isHostStopping(error)) throw error
      }
    },
  }
}
