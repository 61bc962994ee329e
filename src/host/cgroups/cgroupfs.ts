import { existsSync, statSync } from 'node:fs'
import type { Clock } from '../../base/clock.ts'
import { errorCode } from '../../base/errors.ts'
import type { QosClass } from '../../pod/schema/pod-resources.ts'
import type { PodUid } from '../../pod/values/ids.ts'
import type { PodCgroupResources } from '../../translate/resources.ts'
import {
  childCgroups,
  countOomKills,
  hasOomKills,
  hasProcesses,
  killContainerProcesses,
  makeCgroup,
  podCgroupSettings,
  readCgroup,
  removeCgroup,
  removeCgroupTrees,
  sharesSetting,
  writeCgroup,
} from './files.ts'
import type { CgroupSetting } from './files.ts'
import {
  CgroupError,
  cgroupPath,
  cgroupRootParts,
  parsePodCgroup,
  podCgroupName,
  qosCgroupName,
  qosClasses,
  bestEffortShares,
} from './layout.ts'
import type {
  CgroupDriver,
  CgroupHierarchy,
  CgroupSystem,
  PodCgroup,
  PodCgroups,
  QosShares,
} from './layout.ts'

export interface CgroupOptions {
  readonly system: CgroupSystem
  /** Below the root of each hierarchy; `/` for the root itself. */
  readonly root: string
  readonly clock: Clock
}

const removalTimeoutMs = 5000
/** The controllers that podd sets; in version 1 the runtime creates its directories in the other hierarchies. */
const ownControllers = ['cpu', 'memory', 'pids', 'hugetlb']

/** The controllers whose limits a pod would run without. */
const limitingControllers = ['cpu', 'memory', 'pids']

/** What the pods' cgroups are to both drivers, which differ in who makes them. */
export abstract class DriverCgroups {
  readonly options: CgroupOptions
  readonly #driver: CgroupDriver

  constructor(options: CgroupOptions, driver: CgroupDriver) {
    this.options = options
    this.#driver = driver
  }

  listPods(): readonly PodCgroup[] {
    const { system, root } = this.options
    const found = new Map<string, PodCgroup>()
    for (const { path } of system.hierarchies) {
      for (const qosClass of qosClasses) {
        const level = cgroupPath(qosCgroupName(root, qosClass), this.#driver)
        for (const directory of childCgroups(`${path}${level}`)) {
          const uid = parsePodCgroup(directory, this.#driver)
          if (uid !== undefined) found.set(uid, { uid, qosClass })
        }
      }
    }
    return [...found.values()]
  }

  countOomKills(pod: PodCgroup, liveIds: readonly string[]): number | undefined {
    return countOomKills(this.options.system, this.parentOf(pod), liveIds)
  }

  hasOomKills(uid: PodUid, containerId: string): boolean {
    return qosClasses.some((qosClass) =>
      hasOomKills(this.options.system, this.parentOf({ uid, qosClass }), containerId),
    )
  }

  hasProcesses(pod: PodCgroup, containerIds: readonly string[]): boolean | undefined {
    return hasProcesses(this.options.system, this.parentOf(pod), containerIds)
  }

  /** A pod of an earlier podd counts as there under the other driver's name, too. */
  isRemoved({ uid, qosClass }: PodCgroup): boolean {
    const { system, root } = this.options
    const isThere = (path: string): boolean => statSync(path, { throwIfNoEntry: false }) !== undefined
    const names = [qosClass, ...qosClasses].flatMap((each) =>
      (['cgroupfs', 'systemd'] as const).map((driver) => cgroupPath(podCgroupName(root, each, uid), driver)),
    )
    const limiting = system.hierarchies.filter(
      ({ controllers }) =>
        system.version === 2 || controllers.some((controller) => limitingControllers.includes(controller)),
    )
    return limiting.some(
      ({ path }) => !names.some((name) => isThere(`${path}${name}`)) && isThere(`${path}/cgroup.procs`),
    )
  }

  killProcesses(pod: PodCgroup, containerIds: readonly string[]): number {
    return killContainerProcesses(this.options.system, this.parentOf(pod), containerIds)
  }

  parentOf({ uid, qosClass }: PodCgroup): string {
    return cgroupPath(podCgroupName(this.options.root, qosClass, uid), this.#driver)
  }

  /** Kills and removes a pod's cgroup in all places of its possible QoS classes. */
  removePod(uid: PodUid): Promise<readonly string[]> {
    const { system, root, clock } = this.options
    if (!/^[\w-]+$/.test(uid)) throw new CgroupError(`not a pod's UID: ${JSON.stringify(uid)}`, undefined)
    const names = qosClasses.map((qosClass) => cgroupPath(podCgroupName(root, qosClass, uid), this.#driver))
    const paths = system.hierarchies.flatMap(({ path }) => names.map((name) => `${path}${name}`))
    return removeCgroupTrees(paths, clock, removalTimeoutMs)
  }

  /** Removes the empty levels above the pods, from the bottom up; returns the remaining ones. */
  protected removeQosLevels(): readonly string[] {
    const { system, root } = this.options
    const names = qosClasses.map((qosClass) => qosCgroupName(root, qosClass)).reverse()
    return system.hierarchies
      .flatMap(({ path }) => names.map((name) => `${path}${cgroupPath(name, this.#driver)}`))
      .filter((path) => !removeCgroup(path))
  }

  /** Removes empty levels from the bottom up: the QoS levels, `kubepods`, and a cgroup root of podd's own. */
  async removeQosTree(): Promise<readonly string[]> {
    const { system, root } = this.options
    const rootParts = cgroupRootParts(root)
    const left = this.removeQosLevels()
    for (let depth = rootParts.length; depth > 0; depth -= 1) {
      const directory = cgroupPath(rootParts.slice(0, depth), this.#driver)
      // This root may hold cgroups that aren't podd's.
      for (const { path } of system.hierarchies) removeCgroup(`${path}${directory}`)
    }
    return left
  }
}

/** The cgroupfs driver: podd makes directories and writes files. */
export class CgroupfsPodCgroups extends DriverCgroups implements PodCgroups {
  #shares: QosShares | undefined

  constructor(options: CgroupOptions) {
    super(options, 'cgroupfs')
  }

  async ensureQosTree(shares: QosShares): Promise<void> {
    this.#shares = shares
    this.#ensureQosTree(shares)
  }

  async ensurePod(pod: PodCgroup, resources: PodCgroupResources): Promise<void> {
    try {
      this.#ensurePod(pod, resources)
    } catch (error) {
      // The levels above were removed meanwhile: recreate them.
      if (this.#shares === undefined || !(error instanceof CgroupError)) throw error
      if (errorCode(error.cause) !== 'ENOENT') throw error
      this.#ensureQosTree(this.#shares)
      this.#ensurePod(pod, resources)
    }
  }

  #ensureQosTree(shares: QosShares): void {
    const { system, root } = this.options
    const levels = qosLevels(root)
    for (const hierarchy of this.#own()) {
      if (system.version === 2) delegateControllers(hierarchy.path)
      for (const level of levels) {
        const directory = `${hierarchy.path}${level}`
        // A look takes a fifth of the error for one that is there.
        if (!existsSync(directory) && makeCgroup(directory)) countHierarchically(directory, hierarchy)
        if (system.version === 2) delegateControllers(directory)
      }
    }
    this.#setShares('Guaranteed', shares.kubepods)
    this.#setShares('Burstable', shares.burstable)
    this.#setShares('BestEffort', bestEffortShares)
  }

  #setShares(qosClass: QosClass, cpuShares: number): void {
    const { system, root } = this.options
    const path = cgroupPath(qosCgroupName(root, qosClass), 'cgroupfs')
    this.#write(path, [sharesSetting(cpuShares, system.version)])
  }

  #ensurePod(pod: PodCgroup, resources: PodCgroupResources): void {
    const path = this.parentOf(pod)
    let fresh = true
    for (const hierarchy of this.#own()) {
      if (!makeCgroup(`${hierarchy.path}${path}`)) fresh = false
    }
    this.#write(path, podCgroupSettings(resources, this.options.system.version, fresh ? 'fresh' : 'existing'))
  }

  /** A setting whose controller this cgroup doesn't have is skipped: the kernel could not enforce it. */
  #write(path: string, settings: readonly CgroupSetting[]): void {
    for (const { controller, file, value } of settings) {
      const hierarchy = this.#hierarchyOf(controller, path)
      if (hierarchy !== undefined) writeCgroup(`${hierarchy.path}${path}`, file, value)
    }
  }

  /** Version 2: the controllers of a cgroup depend on the levels above, in each of which some may be missing. */
  #hierarchyOf(controller: string, path: string): CgroupHierarchy | undefined {
    const { version, hierarchies } = this.options.system
    if (version === 1) return hierarchies.find(({ controllers }) => controllers.includes(controller))
    const [unified] = hierarchies
    if (unified === undefined) return undefined
    return readCgroup(`${unified.path}${path}`, 'cgroup.controllers').includes(controller)
      ? unified
      : undefined
  }

  #own(): readonly CgroupHierarchy[] {
    const { version, hierarchies } = this.options.system
    if (version === 2) return hierarchies
    return hierarchies.filter(({ controllers }) => controllers.some((name) => ownControllers.includes(name)))
  }
}

/** The levels above the pods, each once and behind the one that it is in. */
function qosLevels(root: string): ReadonlySet<string> {
  const paths = qosClasses.flatMap((qosClass) => {
    const parts = qosCgroupName(root, qosClass)
    return parts.map((_, index) => cgroupPath(parts.slice(0, index + 1), 'cgroupfs'))
  })
  return new Set(paths)
}

/** Version 1 before Linux 5.11: without this, a pod's memory limit wouldn't count its containers. */
function countHierarchically(directory: string, { controllers }: CgroupHierarchy): void {
  if (controllers.includes('memory') && readCgroup(directory, 'memory.use_hierarchy')[0] === '0') {
    writeCgroup(directory, 'memory.use_hierarchy', '1')
  }
}

const enabledFile = 'cgroup.subtree_control'

/**
 * Version 2: enables the controllers of this cgroup for those below, except ones that the kernel refuses. Settings of
 * such a controller are skipped, and the runtime fails for a container that needs it.
 */
function delegateControllers(directory: string): void {
  const enabled = readCgroup(directory, enabledFile)
  const missing = readCgroup(directory, 'cgroup.controllers').filter((name) => !enabled.includes(name))
  if (missing.length === 0) return
  try {
    enableControllers(missing, (value) => writeCgroup(directory, enabledFile, value))
  } catch (error) {
    if (isBusy(error)) {
      throw new CgroupError(
        `cannot enable controllers for the cgroups below ${directory}: there are processes in it`,
        error,
        'Give podd a cgroup root of its own (cgroupRoot) that has no processes.',
      )
    }
    // Skip only what it refused before. Where none was ever enabled, the problem is not a single controller.
    if (enabled.length === 0) throw error
  }
}

/**
 * Enables controllers all at once, or else one by one without those that the kernel refuses, as runc does
 * (`opencontainers/cgroups/fs2/create.go`, CreateCgroupPath): with CONFIG_RT_GROUP_SCHED it refuses `cpu`
 * (EINVAL) while a realtime process is in a cgroup below. Throws where it refuses them all, or says EBUSY.
 */
export function enableControllers(names: readonly string[], write: (value: string) => void): void {
  try {
    write(names.map((name) => `+${name}`).join(' '))
  } catch (error) {
    if (isBusy(error)) throw error
    const accepted = names.filter((name) => isAccepted(name, write))
    if (accepted.length === 0) throw error
  }
}

function isAccepted(name: string, write: (value: string) => void): boolean {
  try {
    write(`+${name}`)
    return true
  } catch (error) {
    if (isBusy(error)) throw error
    return false
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof CgroupError && errorCode(error.cause) === 'EBUSY'
}
