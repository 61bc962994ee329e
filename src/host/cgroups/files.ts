/*
 * The few operations on cgroup directories. They are synchronous: the kernel answers from memory, in less time
 * than a turn through the thread pool takes.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import type { Clock } from '../../base/clock.ts'
import { errorCode, errorMessage } from '../../base/errors.ts'
import { readTextIfThere } from '../../base/read-bounded.ts'
import type { QosClass } from '../../pod/schema/pod-resources.ts'
import { sharesToWeight } from '../../translate/resources.ts'
import type { PodCgroupResources } from '../../translate/resources.ts'
import { CgroupError, cgroupPath, cgroupRootParts, podCgroupName } from './layout.ts'
import type { CgroupDriver, CgroupSystem } from './layout.ts'

/** Creates one directory; returns whether it is new. Its parent must exist. */
export function makeCgroup(path: string): boolean {
  try {
    mkdirSync(path, { mode: 0o755 })
    return true
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false
    throw new CgroupError(`cannot make cgroup ${path}: ${errorMessage(error)}`, error)
  }
}

export function writeCgroup(path: string, file: string, value: string): void {
  try {
    writeFileSync(`${path}/${file}`, value)
  } catch (error) {
    throw new CgroupError(`cannot write ${value} to ${path}/${file}: ${errorMessage(error)}`, error)
  }
}

/** The words of a control file; none where the cgroup was removed meanwhile, or the kernel has no such file. */
export function readCgroup(path: string, file: string): readonly string[] {
  const text = readTextIfThere(`${path}/${file}`) ?? ''
  return text.split(/\s+/).filter((word) => word !== '')
}

/** The names of the child cgroups; none where the cgroup doesn't exist. */
export function childCgroups(path: string): readonly string[] {
  try {
    return readdirSync(path, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name)
  } catch {
    // The cgroup was removed meanwhile.
    return []
  }
}

/** A cgroup and all below it, from the bottom up. */
function cgroupTree(path: string): readonly string[] {
  return [...childCgroups(path).flatMap((name) => cgroupTree(`${path}/${name}`)), path]
}

/** Removes one empty cgroup; returns whether it is gone. */
export function removeCgroup(path: string): boolean {
  try {
    rmdirSync(path)
    return true
  } catch (error) {
    return errorCode(error) === 'ENOENT'
  }
}

const removalPollMs = 10

/**
 * Kills what runs in these cgroups and below, and removes them from the bottom up. A killed process leaves its cgroup a
 * moment later, so this goes on for up to `timeoutMs`. Returns the remaining ones.
 */
export async function removeCgroupTrees(
  paths: readonly string[],
  clock: Clock,
  timeoutMs: number,
): Promise<readonly string[]> {
  const deadline = clock.monotonicMs() + timeoutMs
  for (;;) {
    const left = paths.filter((path) => !removeTree(path))
    if (left.length === 0 || clock.monotonicMs() >= deadline) return left
    for (const path of left) killProcesses(path)
    await clock.sleep(removalPollMs)
  }
}

function removeTree(path: string): boolean {
  return cgroupTree(path)
    .map((directory) => removeCgroup(directory))
    .every((gone) => gone)
}

/** Sends SIGKILL to all processes in a cgroup and below; returns how many there were. Throws CgroupError. */
function killProcesses(path: string): number {
  let killed = 0
  for (const directory of cgroupTree(path)) {
    for (const word of readCgroup(directory, 'cgroup.procs')) {
      const pid = Number(word)
      // 0 is a process of another pid namespace; as an argument of kill it would mean podd's own process group.
      if (pid <= 1 || pid === process.pid) continue
      try {
        process.kill(pid, 'SIGKILL')
        killed += 1
      } catch (error) {
        if (errorCode(error) !== 'ESRCH')
          throw new CgroupError(`cannot kill process ${pid} in ${directory}`, error)
      }
    }
  }
  return killed
}

/** One thing to write to a cgroup. */
export interface CgroupSetting {
  readonly controller: 'cpu' | 'memory' | 'pids' | 'hugetlb'
  readonly file: string
  readonly value: string
}

/**
 * The writes that apply a pod's resources to its cgroup, in an order that the kernel accepts. Absent limits are written
 * only to an existing cgroup, to lift earlier ones.
 */
export function podCgroupSettings(
  resources: PodCgroupResources,
  version: 1 | 2,
  cgroup: 'fresh' | 'existing',
): readonly CgroupSetting[] {
  const { cpuShares, cpuQuotaUs, cpuPeriodUs, memoryLimitBytes, pidsLimit } = resources
  const settings: CgroupSetting[] = [sharesSetting(cpuShares, version)]
  const limit = (controller: CgroupSetting['controller'], file: string, value: string | number): void =>
    void settings.push({ controller, file, value: String(value) })
  const isDue = (value: number | undefined): boolean => cgroup === 'existing' || value !== undefined
  const [max, unlimited] = version === 2 ? (['max', 'max'] as const) : (['limit_in_bytes', -1] as const)
  if (isDue(cpuQuotaUs) && version === 2) limit('cpu', 'cpu.max', `${cpuQuotaUs ?? 'max'} ${cpuPeriodUs}`)
  if (isDue(cpuQuotaUs) && version === 1) {
    limit('cpu', 'cpu.cfs_period_us', cpuPeriodUs)
    limit('cpu', 'cpu.cfs_quota_us', cpuQuotaUs ?? -1)
  }
  if (isDue(memoryLimitBytes)) limit('memory', `memory.${max}`, memoryLimitBytes ?? unlimited)
  if (isDue(pidsLimit)) limit('pids', 'pids.max', pidsLimit ?? 'max')
  for (const { pageSize, limitBytes } of resources.hugepageLimits)
    limit('hugetlb', `hugetlb.${pageSize}.${max}`, limitBytes)
  return settings
}

/** The shares of one level of the tree. */
export function sharesSetting(cpuShares: number, version: 1 | 2): CgroupSetting {
  return version === 2
    ? { controller: 'cpu', file: 'cpu.weight', value: String(sharesToWeight(cpuShares)) }
    : { controller: 'cpu', file: 'cpu.shares', value: String(cpuShares) }
}

/**
 * Whether the pod's cgroup has processes of these containers. Undefined without a cgroup.
 *
 * @param path of the pod's cgroup, below the mount points
 * @param ids of containers; the names of their cgroups have these in them
 */
export function hasProcesses(
  { hierarchies }: CgroupSystem,
  path: string,
  ids: readonly string[],
): boolean | undefined {
  const directories = hierarchies.map((hierarchy) => `${hierarchy.path}${path}`)
  const there = directories.filter((directory) => existsSync(directory))
  if (there.length === 0) return undefined
  return there
    .flatMap((directory) => containersIn(directory, ids))
    .flatMap((own) => cgroupTree(own))
    .some((inner) => readCgroup(inner, 'cgroup.procs').length > 0)
}

/** The cgroups of these containers. */
function containersIn(directory: string, ids: readonly string[]): readonly string[] {
  const names = childCgroups(directory).filter((name) => ids.some((id) => name.includes(id)))
  return names.map((name) => `${directory}/${name}`)
}

/**
 * Kills the processes of these containers in the pod's cgroup, whatever the runtime does; returns how many there were.
 * Throws CgroupError. See hasProcesses for the parameters.
 */
export function killContainerProcesses(
  { hierarchies }: CgroupSystem,
  path: string,
  ids: readonly string[],
): number {
  const killed = hierarchies.map((hierarchy) =>
    containersIn(`${hierarchy.path}${path}`, ids).reduce((sum, own) => sum + killProcesses(own), 0),
  )
  // In version 1 a process stands in each hierarchy.
  return Math.max(0, ...killed)
}

/**
 * Whether a cgroup or its descendants have any process, in any hierarchy. Throws the system's error where that can't be
 * read.
 */
export function isInhabited({ hierarchies }: CgroupSystem, path: string): boolean {
  return hierarchies.some((hierarchy) => hasAny(`${hierarchy.path}${path}`))
}

function hasAny(directory: string): boolean {
  try {
    if (readFileSync(`${directory}/cgroup.procs`, 'utf8').trim() !== '') return true
    return readdirSync(directory, { withFileTypes: true }).some(
      (entry) => entry.isDirectory() && hasAny(`${directory}/${entry.name}`),
    )
  } catch (error) {
    // It doesn't exist, or was removed meanwhile.
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENODEV') return false
    // A threaded cgroup: podd creates none.
    if (errorCode(error) === 'EOPNOTSUPP') return true
    throw error
  }
}

/**
 * The number of OOM kills in this cgroup and below (`oom_kill` of `memory.events`), without those in cgroups of live
 * containers. Kills in removed cgroups stay counted in the ones above; a missing cgroup counts as 0. Undefined in
 * cgroup version 1, which doesn't count.
 *
 * @param path of the cgroup, below the mount point
 * @param liveIds live containers and sandboxes; the names of their cgroups contain these ids
 */
export function countOomKills(
  { version, hierarchies }: CgroupSystem,
  path: string,
  liveIds: readonly string[],
): number | undefined {
  const [unified] = hierarchies
  if (version === 1 || unified === undefined) return undefined
  const directory = `${unified.path}${path}`
  return containersIn(directory, liveIds).reduce(
    (rest, live) => rest - readOomKills(live),
    readOomKills(directory),
  )
}

/**
 * Whether the kernel has killed for memory in a container's cgroup, or below. It counts in both versions there; the cgroup
 * is there for some milliseconds after the container's end.
 * @param path of the pod's cgroup, below the mount points
 * @param containerId the name of the container's cgroup contains it
 */
export function hasOomKills(system: CgroupSystem, path: string, containerId: string): boolean {
  const memory = memoryHierarchy(system)
  if (memory === undefined) return false
  const file = system.version === 2 ? 'memory.events' : 'memory.oom_control'
  return containersIn(`${memory}${path}`, [containerId])
    .flatMap((own) => cgroupTree(own))
    .some((inner) => readOomKills(inner, file) > 0)
}

function readOomKills(directory: string, file = 'memory.events'): number {
  const words = readCgroup(directory, file)
  const at = words.indexOf('oom_kill')
  return at === -1 ? 0 : Number(words[at + 1])
}

/** The root of the pods' cgroups. */
export interface PodsCgroup {
  readonly system: CgroupSystem
  readonly root: string
  readonly driver: CgroupDriver
}

/**
 * The memory that all pods together may have, in bytes: of `kubepods` and the levels above it, the one with the least
 * memory left. Reclaimable memory counts as available (`inactive_file`), as for the kubelet's
 * `allocatableMemory.available`. Undefined where none of them has a limit.
 */
export function readPodsMemory({
  system,
  root,
  driver,
}: PodsCgroup): { readonly available: number; readonly capacity: number } | undefined {
  const hierarchyPath = memoryHierarchy(system)
  if (hierarchyPath === undefined) return undefined
  const parts = [...cgroupRootParts(root), 'kubepods']
  const levels = parts.map((_, at) => `${hierarchyPath}${cgroupPath(parts.slice(0, at + 1), driver)}`)
  return levels
    .flatMap((path) => readLevel(path, system.version) ?? [])
    .toSorted((one, other) => one.available - other.available)[0]
}

/** The bytes that a pod uses and the kernel can't reclaim; undefined where it has no cgroup. */
export function readPodMemory(
  { system, root, driver }: PodsCgroup,
  qosClass: QosClass,
  uid: string,
): number | undefined {
  const hierarchyPath = memoryHierarchy(system)
  if (hierarchyPath === undefined) return undefined
  const path = `${hierarchyPath}${cgroupPath(podCgroupName(root, qosClass, uid), driver)}`
  return readUsage(path, system.version)
}

function memoryHierarchy({ version, hierarchies }: CgroupSystem): string | undefined {
  return hierarchies.find(({ controllers }) => version === 2 || controllers.includes('memory'))?.path
}

/** Version 1 represents no limit by a number beyond any memory. */
const unlimitedBytes = 2 ** 60

function readLevel(path: string, version: 1 | 2) {
  const capacity = Number(readCgroup(path, version === 2 ? 'memory.max' : 'memory.limit_in_bytes')[0])
  const usage = readUsage(path, version)
  if (!Number.isFinite(capacity) || usage === undefined || capacity > unlimitedBytes) return undefined
  return { available: Math.max(0, capacity - usage), capacity }
}

/** Without reclaimable memory. */
function readUsage(path: string, version: 1 | 2): number | undefined {
  const [usageFile, inactive] =
    version === 2
      ? (['memory.current', 'inactive_file'] as const)
      : (['memory.usage_in_bytes', 'total_inactive_file'] as const)
  const usage = Number(readCgroup(path, usageFile)[0])
  if (!Number.isFinite(usage)) return undefined
  const stat = readCgroup(path, 'memory.stat')
  const at = stat.indexOf(inactive)
  return Math.max(0, usage - (at === -1 ? 0 : Number(stat[at + 1])))
}
