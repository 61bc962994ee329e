/*
 * The tree of cgroups: how it is mounted, who makes cgroups in it, what they are called, and which choice its pods were
 * made by.
 */
import { chmodSync, existsSync, readdirSync, statSync } from 'node:fs'
import { PoddError } from '../../base/errors.ts'
import { isJsonObject } from '../../base/json.ts'
import { readStateSync, replaceStateSync } from '../../base/state-file.ts'
import type { Migration } from '../../base/state-file.ts'
import type { QosClass } from '../../pod/schema/pod-resources.ts'
import type { PodUid } from '../../pod/values/ids.ts'
import type { PodCgroupResources } from '../../translate/resources.ts'
import type { MountEntry } from '../mounts.ts'

/** Who creates cgroups: podd and the runtime themselves, or systemd on request. */
export type CgroupDriver = 'cgroupfs' | 'systemd'

/** One mounted tree of cgroups. Version 2 has one; version 1 one for each group of controllers. */
export interface CgroupHierarchy {
  readonly path: string
  /** `cpu`, `memory`, `name=systemd`, …; empty for version 2. */
  readonly controllers: readonly string[]
}

export interface CgroupSystem {
  readonly version: 1 | 2
  readonly hierarchies: readonly CgroupHierarchy[]
}

/**
 * How this host's cgroups are mounted. Version 2 means that /sys/fs/cgroup itself is a cgroup2 tree, as the
 * kubelet and runc see it; beside version 1 (the hybrid layout) a cgroup2 tree counts as one more hierarchy
 * without controllers. Undefined: no cgroups are mounted at all.
 */
export function detectCgroups(
  mounts: readonly MountEntry[],
  directory = '/sys/fs/cgroup',
): CgroupSystem | undefined {
  const cgroups = mounts.filter(
    ({ mountPoint, fsType }) =>
      (fsType === 'cgroup' || fsType === 'cgroup2') &&
      (mountPoint === directory || mountPoint.startsWith(`${directory}/`)),
  )
  if (cgroups.some(({ mountPoint, fsType }) => mountPoint === directory && fsType === 'cgroup2')) {
    return { version: 2, hierarchies: [{ path: directory, controllers: [] }] }
  }
  if (cgroups.length === 0) return undefined
  return {
    version: 1,
    hierarchies: cgroups.map(({ mountPoint, fsType, superOptions }) => ({
      path: mountPoint,
      controllers: fsType === 'cgroup2' ? [] : superOptions.filter((word) => word !== 'rw' && word !== 'ro'),
    })),
  }
}

/**
 * The cgroup driver where neither the user nor the runtime names one: systemd where it is PID 1 and cgroups are version
 * 2, as it must be the only writer of its tree there; cgroupfs everywhere else. It must not change while pods exist:
 * their cgroups would be in another place.
 */
export function chooseCgroupDriver(facts: {
  readonly configured: CgroupDriver | 'auto'
  /** From CRI's RuntimeConfig or the runtime's own config. */
  readonly runtime: CgroupDriver | undefined
  /** systemd is PID 1. */
  readonly systemd: boolean
  readonly version: 1 | 2
}): CgroupDriver {
  if (facts.configured !== 'auto') return facts.configured
  return facts.runtime ?? (facts.systemd && facts.version === 2 ? 'systemd' : 'cgroupfs')
}

/** A cgroup's name, from the root's components down: `['kubepods', 'burstable', 'pod<uid>']`. */
export type CgroupName = readonly string[]

const qosDirectories: Readonly<Record<QosClass, readonly string[]>> = {
  Guaranteed: [],
  Burstable: ['burstable'],
  BestEffort: ['besteffort'],
}

export const qosClasses = ['Guaranteed', 'Burstable', 'BestEffort'] as const

/** The CPU shares of all pods of this class. */
export const bestEffortShares = 2

/** The components of a cgroup root (`/a/b`); none for `/`. */
export function cgroupRootParts(root: string): CgroupName {
  return root.split('/').filter((part) => part !== '')
}

/** `<root>/kubepods[/burstable|/besteffort]`. */
export function qosCgroupName(root: string, qosClass: QosClass): CgroupName {
  return [...cgroupRootParts(root), 'kubepods', ...qosDirectories[qosClass]]
}

export function podCgroupName(root: string, qosClass: QosClass, uid: string): CgroupName {
  return [...qosCgroupName(root, qosClass), `pod${uid}`]
}

/**
 * The path of a cgroup in its hierarchy, and the value of CRI's `cgroup_parent`: plain directories, or systemd's
 * slices, each within the one before (`cm/cgroup_manager_linux.go`, ToSystemd, 1.36).
 */
export function cgroupPath(name: CgroupName, driver: CgroupDriver): string {
  if (driver === 'cgroupfs') return `/${name.join('/')}`
  const escaped = name.map((part) => part.replaceAll('-', '_'))
  return escaped.map((_, index) => `/${escaped.slice(0, index + 1).join('-')}.slice`).join('')
}

/** systemd's name for a cgroup: the last part of its path. */
export function sliceName(name: CgroupName): string {
  return `${name.map((part) => part.replaceAll('-', '_')).join('-')}.slice`
}

/** The UID of the pod whose cgroup a directory is, undefined for other directories. */
export function parsePodCgroup(directory: string, driver: CgroupDriver): string | undefined {
  if (driver === 'cgroupfs') return /^pod([\w-]+)$/.exec(directory)?.[1]
  return /-pod([\w]+)\.slice$/.exec(directory)?.[1]?.replaceAll('_', '-')
}

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
  /** From milliCpuToShares (translate/resources.ts) of the sum of their requests (`cm/qos_container_manager_linux.go`, 1.36). */
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
  /** The OOM kills in the pod's cgroup, without those of live containers: see countOomKills (files.ts). */
  countOomKills(pod: PodCgroup, liveIds: readonly string[]): number | undefined
  /** Whether the kernel has killed for memory in this container: see hasOomKills (files.ts). */
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

/** The cgroup root and driver of the pods. */
export interface CgroupChoice {
  readonly root: string
  readonly driver: CgroupDriver
}

/** Who can write this file decides where podd limits its pods. */
const choiceMode = 0o600

/** Version 1 has no version field. */
const migrations: readonly Migration[] = [
  (content) => {
    if (!isJsonObject(content)) throw new Error('it is not an object')
    return content
  },
]
const version = migrations.length + 1

/** The choice recorded in the state directory, by which its pods were created. Throws the system's error. */
export function readCgroupChoice(rootDir: string): CgroupChoice | undefined {
  const reading = readStateSync(choicePath(rootDir), migrations)
  if (reading?.kind !== 'current') return undefined
  const { root, driver } = reading.content
  if (typeof root !== 'string' || (driver !== 'cgroupfs' && driver !== 'systemd')) return undefined
  return { root, driver }
}

/** Saves the choice durably. A file that can't be read is put aside and reported. Throws the system's error. */
export function saveCgroupChoice(
  rootDir: string,
  choice: CgroupChoice,
  report?: (unreadable: { readonly path: string; readonly message: string }) => void,
): void {
  const known = readCgroupChoice(rootDir)
  const path = choicePath(rootDir)
  if (known?.root === choice.root && known.driver === choice.driver) {
    if ((statSync(path).mode & 0o777) !== choiceMode) chmodSync(path, choiceMode)
    return
  }
  const before = readStateSync(path, migrations)
  replaceStateSync(path, before, { version, ...choice }, { mode: choiceMode, report })
}

function choicePath(rootDir: string): string {
  return `${rootDir}/cgroups.json`
}

/** Whether any pod with a directory below podd's root directory has its cgroup by this choice. Throws the system's error. */
export function hasPodsIn({ root, driver }: CgroupChoice, system: CgroupSystem, rootDir: string): boolean {
  return podUids(rootDir).some((uid) =>
    qosClasses.some((qosClass) => {
      const path = cgroupPath(podCgroupName(root, qosClass, uid), driver)
      return system.hierarchies.some((hierarchy) => existsSync(`${hierarchy.path}${path}`))
    }),
  )
}

function podUids(rootDir: string): readonly string[] {
  // No pod was ever created here.
  if (!existsSync(`${rootDir}/pods`)) return []
  return readdirSync(`${rootDir}/pods`)
}
