import { cpus } from 'node:os'
import type { Clock } from '../../base/clock.ts'
import type * as cri from '../../cri-types/cri-v1.ts'
import { readFileSystem, readHostStats, readMemoryAmount } from '../../host/facts/host-stats.ts'
import type {
  ContainerStats,
  ContainerUsage,
  FileSystemStats,
  InterfaceStats,
  MemoryStats,
  NodeStats,
  NodeUsage,
  PodStats,
} from '../../pod/state/usage.ts'
import { isCriError } from '../../runtime/cri-runtime.ts'
import { labelKeys } from '../../translate/identity.ts'
import type { RuntimeAccess } from '../runtime/runtime-access.ts'
import type { RuntimeStats } from '../runtime/runtime-stats.ts'

/**
 * Measures the host and what runs on it: for metrics and the stats summary. Throws CriError, the system's error, or the
 * signal's reason.
 */
export async function measureNode(
  { stats, imageStore }: RuntimeAccess,
  rootDir: string,
  clock: Clock,
  signal: AbortSignal,
): Promise<NodeStats> {
  const [host, containers, sandboxes, rootFs, { imageFs, containerFs }] = await Promise.all([
    readHostStats(),
    stats.containers(signal),
    readSandboxes(stats, signal),
    measureDisk(rootDir),
    imageStore.usage(signal).then(async (used) => ({
      imageFs: used.images && (await measureDisk(used.images.path, used.images)),
      containerFs: used.layers && (await measureDisk(used.layers.path, used.layers)),
    })),
  ])
  return {
    atMs: clock.wallMs(),
    host: { ...host, rootFs, imageFs, containerFs },
    pods: toPods(containers.stats, sandboxes),
  }
}

/** None where the runtime has no such call: containerd before 1.7. */
async function readSandboxes(
  stats: RuntimeStats,
  signal: AbortSignal,
): Promise<readonly cri.PodSandboxStats[]> {
  try {
    return (await stats.sandboxes(signal)).stats
  } catch (error) {
    if (isCriError(error, 'RUNTIME_UNSUPPORTED')) return []
    throw error
  }
}

/** @param used of what is told, where that isn't all that is on the file system */
async function measureDisk(
  path: string,
  used: Pick<FileSystemStats, 'usedBytes' | 'inodesUsed'> = {},
): Promise<FileSystemStats> {
  const { bytes, inodes } = await readFileSystem(path)
  return {
    path,
    capacityBytes: bytes.capacity,
    availableBytes: bytes.available,
    inodes: inodes?.capacity,
    inodesFree: inodes?.available,
    usedBytes: used.usedBytes,
    inodesUsed: used.inodesUsed,
  }
}

function toPods(
  containers: readonly cri.ContainerStats[],
  sandboxes: readonly cri.PodSandboxStats[],
): readonly PodStats[] {
  const byPod = Map.groupBy(containers, ({ attributes }) => attributes?.labels[labelKeys.podUid] ?? '')
  const bySandbox = new Map(sandboxes.map((each) => [each.attributes?.labels[labelKeys.podUid] ?? '', each]))
  return [...new Set([...byPod.keys(), ...bySandbox.keys()])]
    .filter((uid) => uid !== '')
    .map((uid) => {
      const { cpu, memory, network, process } = bySandbox.get(uid)?.linux ?? {}
      const own = (byPod.get(uid) ?? []).flatMap((stats) => toContainer(stats))
      const total = (read: (container: ContainerStats) => number | undefined): number | undefined =>
        sum(own.map((container) => read(container)))
      return {
        uid,
        containers: own,
        cpuNanoSeconds: cpu?.usageCoreNanoSeconds?.value ?? total(({ cpuNanoSeconds }) => cpuNanoSeconds),
        memory: memory
          ? toMemory(memory)
          : {
              workingSet: total((container) => container.memory.workingSet),
              usage: total((container) => container.memory.usage),
              rss: total((container) => container.memory.rss),
              pageFaults: total((container) => container.memory.pageFaults),
              majorPageFaults: total((container) => container.memory.majorPageFaults),
            },
        swapBytes: total(({ swapBytes }) => swapBytes),
        interfaces: toInterfaces(network),
        processes: process?.processCount?.value,
      }
    })
}

function toContainer({ attributes, cpu, memory, swap, writableLayer }: cri.ContainerStats): ContainerStats[] {
  const name = attributes?.labels[labelKeys.containerName]
  if (attributes === null || name === undefined) return []
  return [
    {
      name,
      id: attributes.id,
      cpuNanoSeconds: cpu?.usageCoreNanoSeconds?.value,
      memory: toMemory(memory),
      swapBytes: swap?.swapUsageBytes?.value,
      layer: { usedBytes: writableLayer?.usedBytes?.value, inodesUsed: writableLayer?.inodesUsed?.value },
    },
  ]
}

function toMemory(memory: cri.MemoryUsage | null): MemoryStats {
  return {
    workingSet: memory?.workingSetBytes?.value,
    usage: memory?.usageBytes?.value,
    rss: memory?.rssBytes?.value,
    pageFaults: memory?.pageFaults?.value,
    majorPageFaults: memory?.majorPageFaults?.value,
  }
}

/** The sum of the known values; undefined where none is. */
function sum(values: readonly (number | undefined)[]): number | undefined {
  const known = values.filter((value) => value !== undefined)
  return known.length === 0 ? undefined : known.reduce((total, value) => total + value, 0)
}

function toInterfaces(network: cri.NetworkUsage | null | undefined): readonly InterfaceStats[] {
  if (network === null || network === undefined) return []
  const { defaultInterface, interfaces } = network
  return [...(defaultInterface === null ? [] : [defaultInterface]), ...interfaces].map((each) => ({
    name: each.name,
    receivedBytes: each.rxBytes?.value ?? 0,
    receiveErrors: each.rxErrors?.value ?? 0,
    sentBytes: each.txBytes?.value ?? 0,
    sendErrors: each.txErrors?.value ?? 0,
  }))
}

/** A shorter time is inaccurate, a longer one tells of the past. */
const leastWindowMs = 1000
const longestWindowMs = 60_000

interface Reading<Found> {
  readonly takenAtMs: number
  readonly found: Found
}

interface TwoReadings<Found> {
  readonly before: Found
  readonly now: Found
  readonly windowMs: number
}

/**
 * Reads twice what only grows, for the difference between the readings, when asked and at no other time: one now, and
 * the one before, if it was taken within the last minute, else one of a second ago. Throws what a reading throws, or the
 * signal's reason.
 */
function twoReadings<Found>(clock: Clock, take: (signal: AbortSignal) => Found | Promise<Found>) {
  let last: Reading<Found> | undefined
  const read = async (signal: AbortSignal): Promise<Reading<Found>> => {
    const found = await take(signal)
    return { takenAtMs: clock.monotonicMs(), found }
  }
  return async (signal: AbortSignal): Promise<TwoReadings<Found>> => {
    const isRecent = last !== undefined && clock.monotonicMs() - last.takenAtMs <= longestWindowMs
    const before = last !== undefined && isRecent ? last : await read(signal)
    const leftMs = before.takenAtMs + leastWindowMs - clock.monotonicMs()
    if (leftMs > 0) await clock.sleep(leftMs, signal)
    const now = await read(signal)
    last = now
    return { before: before.found, now: now.found, windowMs: now.takenAtMs - before.takenAtMs }
  }
}

/** Measures what the host uses, as `usageMeter` does it for containers. Throws the signal's reason. */
export function nodeUsageMeter(clock: Clock): (signal: AbortSignal) => Promise<NodeUsage> {
  const readBusy = twoReadings(clock, readBusyMs)
  return async (signal) => {
    const { before, now, windowMs } = await readBusy(signal)
    const memory = readMemoryAmount()
    return {
      atMs: clock.wallMs(),
      windowMs: Math.round(Math.max(1, windowMs)),
      cpuNanoCores: Math.max(0, Math.round(((now - before) / Math.max(1, windowMs)) * 1e9)),
      memoryBytes: memory === undefined ? 0 : memory.capacity - memory.available,
    }
  }
}

/** Of all CPUs since the host's start, in milliseconds. */
function readBusyMs(): number {
  return cpus().reduce((sum, { times: { user, nice, sys, irq } }) => sum + user + nice + sys + irq, 0)
}

/**
 * Measures what containers use: the CPU time between two readings. (Runtimes give a rate of their own only from containerd
 * 2.x on, over a window of their own.) Throws CriError, or the signal's reason.
 */
export function usageMeter(
  stats: Pick<RuntimeStats, 'containers'>,
  clock: Clock,
): (signal: AbortSignal) => Promise<readonly ContainerUsage[]> {
  const readStats = twoReadings(clock, (signal) => readContainers(stats, signal))
  return async (signal) => {
    const { before, now, windowMs } = await readStats(signal)
    return [...now.stats].flatMap(([id, found]) => {
      // It is not new: what it used since the other reading is unknown.
      if (before.unanswered.has(id)) return []
      const usage = measure(found, before.stats.get(id), windowMs)
      return usage === undefined ? [] : [{ ...usage, atMs: clock.wallMs() }]
    })
  }
}

interface ContainerReadings {
  readonly stats: ReadonlyMap<string, cri.ContainerStats>
  /** The containers whose usage could not be read. */
  readonly unanswered: ReadonlySet<string>
}

async function readContainers(
  source: Pick<RuntimeStats, 'containers'>,
  signal: AbortSignal,
): Promise<ContainerReadings> {
  const { stats, unanswered } = await source.containers(signal)
  return {
    unanswered,
    stats: new Map(
      stats.flatMap((entry) => (entry.attributes === null ? [] : [[entry.attributes.id, entry]])),
    ),
  }
}

/** Undefined for a container that doesn't run, or isn't of a pod. */
function measure(
  now: cri.ContainerStats,
  before: cri.ContainerStats | undefined,
  sampleWindowMs: number,
): Omit<ContainerUsage, 'atMs'> | undefined {
  const labels = now.attributes?.labels ?? {}
  const uid = labels[labelKeys.podUid]
  const container = labels[labelKeys.containerName]
  const used = now.cpu?.usageCoreNanoSeconds?.value
  if (uid === undefined || container === undefined || used === undefined) return undefined
  // A new container has used all of it since.
  const usedBefore = before?.cpu?.usageCoreNanoSeconds?.value ?? 0
  const betweenMs = ((now.cpu?.timestamp ?? 0) - (before?.cpu?.timestamp ?? 0)) / 1e6
  const windowMs = before?.cpu === undefined || before.cpu === null ? sampleWindowMs : betweenMs
  return {
    uid,
    container,
    windowMs: Math.round(windowMs),
    cpuNanoCores: windowMs > 0 ? Math.max(0, Math.round(((used - usedBefore) / windowMs) * 1000)) : 0,
    memoryBytes: now.memory?.workingSetBytes?.value ?? now.memory?.usageBytes?.value ?? 0,
  }
}
