import { readIfExists } from '../../base/atomic-file.ts'
import type { Clock } from '../../base/clock.ts'
import type * as cri from '../../cri-types/cri-v1.ts'
import { checkMountSharing } from '../../host/mounts.ts'
import { whenThere } from '../../host/watch-names.ts'
import { objectKey } from '../../pod/objects/local-object.ts'
import type { ObjectKey } from '../../pod/objects/local-object.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import { fieldOf } from '../../pod/schema/issues.ts'
import { podSecurityContextSchema } from '../../pod/schema/pod-schema.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import { kindOfSource } from '../../pod/values/ids.ts'
import type { ContainerId, PodRef, PodUid, SandboxId, SourceName } from '../../pod/values/ids.ts'
import type { CallOptions } from '../../runtime/cri-runtime.ts'
import type { ExecLimits } from '../../translate/environment.ts'
import type { HostVolume, NestedMount } from '../../translate/mounts.ts'
import type { ResolvConf } from '../../translate/network.ts'
import { missingObject } from '../../translate/references.ts'
import { podCgroupResources } from '../../translate/resources.ts'
import type { ResourceFacts } from '../../translate/resources.ts'
import type { SecurityFacts, UserRange } from '../../translate/security-context.ts'
import type { ResourceList } from '../../translate/spec-view.ts'
import { computeVolumeFiles } from '../../translate/volume-files.ts'
import { listClaimOwners } from '../../volumes/claims.ts'
import { measureDiskUsage, readInside } from '../../volumes/open-inside.ts'
import type { FsGroup } from '../../volumes/open-inside.ts'
import {
  claimUserRange,
  prepareTerminationLog,
  readTerminationLog,
  removeTerminationLog,
  ResolvConfFiles,
  volumeDirectory,
  writeEtcHosts,
} from '../../volumes/pod-directory.ts'
import { prepareVolumes, teardownVolumes } from '../../volumes/prepare-volumes.ts'
import { bindSubPath, checkMountKinds, makeNestedMountPoint } from '../../volumes/sub-path.ts'
import type { SubPathMount } from '../../volumes/sub-path.ts'
import { checkHostPath } from '../../volumes/volume-plugins.ts'
import type { ImageArchives } from '../images/archives.ts'
import type { ObjectViews } from '../serving/object-store.ts'

type Call<Request, Reply> = (
  request: Request,
  options?: Pick<CallOptions, 'signal' | 'deadlineMs'>,
) => Promise<Reply>

/** What acting for a pod needs of CRI's RuntimeService. */
export interface PodCalls {
  readonly runPodSandbox: Call<cri.RunPodSandboxRequestInput, cri.RunPodSandboxResponse>
  readonly podSandboxStatus: Call<cri.PodSandboxStatusRequestInput, cri.PodSandboxStatusResponse>
  readonly stopPodSandbox: Call<cri.StopPodSandboxRequestInput, unknown>
  readonly removePodSandbox: Call<cri.RemovePodSandboxRequestInput, unknown>
  readonly createContainer: Call<cri.CreateContainerRequestInput, cri.CreateContainerResponse>
  readonly startContainer: Call<cri.StartContainerRequestInput, unknown>
  readonly containerStatus: Call<cri.ContainerStatusRequestInput, cri.ContainerStatusResponse>
  readonly stopContainer: Call<cri.StopContainerRequestInput, unknown>
  readonly removeContainer: Call<cri.RemoveContainerRequestInput, unknown>
  readonly updateContainerResources: Call<cri.UpdateContainerResourcesRequestInput, unknown>
  readonly containerStats: Call<cri.ContainerStatsRequestInput, cri.ContainerStatsResponse>
}

/** The pod's cgroup. */
export interface PodHostCgroups {
  /**
   * Makes it, with the pod's resources; gives what CRI's cgroup_parent takes.
   * @param before the pod as its containers are now: the cgroup then has room for the larger of the two
   */
  ensure(uid: PodUid, pod: Pod, before?: Pod): Promise<string>
  /** Removes it and what lingers in it. */
  remove(uid: PodUid): Promise<void>
  /** How often the kernel has killed in it for memory, but for those (sandboxes, too) that live; undefined where that can't be known. */
  countOomKills(uid: PodUid, pod: Pod, liveIds: readonly string[]): Promise<number | undefined>
  /** Whether somebody has removed it, of a pod that runs; false where that can't be known. Throws what reading it throws. */
  isRemoved(uid: PodUid, pod: Pod): Promise<boolean>
  /** Whether the kernel has killed for memory in this container, which has just ended. */
  hasOomKills(uid: PodUid, containerId: ContainerId): Promise<boolean>
  /** Whether processes of these containers live in it; undefined where that can't be known. */
  hasProcesses(uid: PodUid, pod: Pod, containerIds: readonly ContainerId[]): Promise<boolean | undefined>
  /** Kills the processes of these containers and sandboxes, past the runtime; returns how many there were. */
  killProcesses(uid: PodUid, pod: Pod, ids: readonly string[]): Promise<number>
}

/** The pod's directory and what is mounted from it. */
interface PodVolumes {
  /**
   * Makes the pod's volumes; again for one that has them changes nothing. `warn` hears of what one goes without.
   * Throws PoddError with the reason.
   */
  prepare(input: {
    readonly uid: PodUid
    readonly pod: Pod
    readonly source: SourceName
    readonly warn?: (message: string) => void
  }): Promise<ReadonlyMap<string, HostVolume>>
  /** The sources that own the data of claims, by the claims' keys, as far as there is a record of it. */
  listClaimOwners(): Promise<ReadonlyMap<ObjectKey, SourceName>>
  /** Whether its hostPath volumes are what they shall be; makes nothing. Throws PoddError with the reason. */
  checkHostPaths(pod: Pod): Promise<void>
  /** Whether what a container mounts fits its image, by a process that runs of it. Throws PoddError with the reason. */
  checkMountKinds(pod: Pod, container: ContainerSpec, pid: number): Promise<void>
  /** Resolves when something is at this path of the host, as far as that can be noticed; rejects with the signal's reason. */
  whenThere(path: string, signal: AbortSignal): Promise<void>
  /** The text of a file in a volume that containers may have written; undefined where there is none. */
  readFile(volumePath: string, path: string): Promise<string | undefined>
  /** The bytes of disk that an emptyDir takes. */
  measureEmptyDir(uid: PodUid, volume: string): Promise<number>
  /** Binds a part of a volume to a place of the pod's and gives that. Throws PoddError where it leads out or is missing. */
  bindSubPath(mount: Omit<SubPathMount, 'rootDir'>): Promise<string>
  /**
   * Makes the place where something is mounted inside a directory of files. `isInUse`: a running container has the
   * directory. Throws PoddError where it can't be.
   */
  makeMountPoint(mount: NestedMount, isInUse: boolean): Promise<void>
  /** Throws PoddError where the host's mount at a path isn't shared as a container's mount of it needs. */
  checkMountSharing(path: string, isTwoWay: boolean): Promise<void>
  /** Writes the pod's hosts file and gives its path. */
  writeHostsFile(uid: PodUid, text: string): Promise<string>
  /** Writes the pod's resolv.conf and gives its path. */
  writeResolvConf(uid: PodUid, text: string): Promise<string>
  /** Forgets it, for the containers of a new sandbox. */
  removeResolvConf(uid: PodUid): Promise<void>
  /** Brings it up to date in place, where the pod has one. */
  refreshResolvConf(uid: PodUid, text: string): Promise<boolean>
  /** Makes the empty file that takes a container's termination message. */
  makeTerminationLog(uid: PodUid, container: string, restartCount: number): Promise<string>
  /** What a container wrote there, at most 4096 bytes; empty where it wrote nothing. */
  readTerminationLog(uid: PodUid, container: string, restartCount: number): Promise<string>
  removeTerminationLog(uid: PodUid, container: string, restartCount: number): Promise<void>
  /** The host's users that are the pod's own; the same at each call. */
  userRange(uid: PodUid): UserRange
  /** Unmounts and removes all of it. */
  teardown(uid: PodUid): Promise<void>
}

/** A container's log is known by these three. */
export interface LoggedContainer {
  readonly name: string
  readonly id: ContainerId
  readonly restartCount: number
}

/** Where the pod's logs lie. */
export interface PodLogs {
  /** The pod's log directory. */
  directory(ref: PodRef): string
  /** Makes the directory for a container's logs; tells whether there was none. */
  prepare(ref: PodRef, container: string): Promise<boolean>
  /** The highest restart count of which there is a log; undefined where there is no log. */
  newestInstance(ref: PodRef, container: string): Promise<number | undefined>
  /** Puts the link for log shippers in place, where there is a log; tells whether there is one. */
  link(ref: PodRef, container: LoggedContainer): Promise<boolean>
  /** Removes the pod's links to logs of all other containers. */
  retainLinks(ref: PodRef, containers: readonly LoggedContainer[]): Promise<void>
  /** Removes the link and the log of a container that is removed. */
  remove(ref: PodRef, container: LoggedContainer): Promise<void>
  /** The last lines of a container's log, at most 80 lines and 2048 bytes. */
  tail(ref: PodRef, container: string, restartCount: number): Promise<string>
  removeAll(ref: PodRef): Promise<void>
}

export type HookHandler = NonNullable<NonNullable<ContainerSpec['lifecycle']>['postStart']>

/** Runs a lifecycle hook. */
export interface HookRunner {
  /** Whether the runtime keeps such a hook over podd's end: a hook that was begun is then waited for by `run`, and not run again. */
  readonly isHeld?: (handler: HookHandler) => boolean
  /** Resolves when the handler has succeeded; throws PoddError otherwise, or the signal's reason. */
  run(input: {
    readonly pod: PodRef
    readonly handler: HookHandler
    readonly hook: 'postStart' | 'preStop'
    readonly containerId: ContainerId
    readonly podIp: string | undefined
    readonly ports: ContainerSpec['ports']
    /** Undefined: only the signal ends it. */
    readonly timeoutMs: number | undefined
    readonly signal: AbortSignal
    /** Called when it begins: the runtime has the call, where it needs the runtime. */
    readonly onSent?: () => void
  }): Promise<void>
}

/** All of the host that acting for a pod needs. */
export interface PodHost {
  readonly calls: PodCalls
  readonly cgroups: PodHostCgroups
  /** Kills the runtime's process that holds a sandbox and its containers; returns its pid, or undefined where there is none. */
  killShim(id: SandboxId): number | undefined
  readonly volumes: PodVolumes
  readonly logs: PodLogs
  readonly hooks: HookRunner
  /** Tells whether a missing image is about to be imported; left out where nothing is. */
  readonly archives?: Pick<ImageArchives, 'awaited' | 'prefer'>
  readonly instance: string
  readonly hostName: string
  /** What pods on the host's network see as /etc/hosts. */
  readHostsFile(): Promise<string>
  readResolver(): Promise<ResolvConf>
  /** Tells when the resolver may have changed, until the signal is aborted. */
  readonly followResolver?: (onHint: () => void, signal: AbortSignal) => Promise<void>
  hostIps(): readonly string[]
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
  /** Path of a seccomp profile for sandboxes; without one they get the runtime's default. */
  readonly sandboxSeccompPath?: () => string | undefined
}

/** The pods' directories under `<root-dir>/pods`. */
export function createPodVolumes(options: {
  readonly rootDir: string
  readonly resources: ResourceFacts
  readonly objects: ObjectViews
  readonly capacity: ResourceList
  readonly hostName: string
  readonly clock: Clock
}): PodVolumes {
  const { rootDir, objects, capacity, hostName, clock } = options
  const resolvConfs = new ResolvConfFiles(rootDir)
  return {
    prepare: ({ uid, pod, source, warn }) => {
      const { namespace } = pod.metadata
      const seen = objects.seenBy(source)
      const fields = { pod, uid, nodeName: hostName, hostIps: [], podIps: [] }
      return prepareVolumes(pod.spec.volumes, {
        uid,
        namespace,
        rootDir,
        memoryBytes: podMemoryBytes(pod, options.resources),
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
    listClaimOwners: () => listClaimOwners(rootDir),
    readFile: readInside,
    checkHostPaths: async ({ spec }) => {
      for (const volume of spec.volumes) await checkHostPath(volume)
    },
    checkMountKinds: ({ spec }, container, pid) => checkMountKinds(container, spec.volumes, pid),
    whenThere,
    measureEmptyDir: (uid, volume) => measureDiskUsage(volumeDirectory(rootDir, uid, 'empty-dir', volume)),
    makeMountPoint: makeNestedMountPoint,
    checkMountSharing,
    bindSubPath: (mount) => bindSubPath({ rootDir, ...mount }),
    writeHostsFile: (uid, text) => writeEtcHosts(rootDir, uid, text),
    writeResolvConf: (uid, text) => resolvConfs.write(uid, text),
    removeResolvConf: (uid) => resolvConfs.remove(uid),
    refreshResolvConf: (uid, text) => resolvConfs.refresh(uid, text),
    makeTerminationLog: (uid, container, restartCount) =>
      prepareTerminationLog({ rootDir, uid, container, restartCount }),
    readTerminationLog: (uid, container, restartCount) =>
      readTerminationLog({ rootDir, uid, container, restartCount }),
    removeTerminationLog: (uid, container, restartCount) =>
      removeTerminationLog({ rootDir, uid, container, restartCount }),
    userRange: (uid) => claimUserRange(rootDir, uid),
    teardown: (uid) => {
      resolvConfs.forget(uid)
      return teardownVolumes(rootDir, uid)
    },
  }
}

function fsGroupOf(pod: Pod): FsGroup | undefined {
  const context = fieldOf(pod.spec, 'securityContext', podSecurityContextSchema)
  if (context?.fsGroup === undefined) return undefined
  return { gid: context.fsGroup, changePolicy: context.fsGroupChangePolicy ?? 'Always' }
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
