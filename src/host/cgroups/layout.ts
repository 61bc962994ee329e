import type { QosClass } from '../../pod/schema/pod-resources.ts'
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
