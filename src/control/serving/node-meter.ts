import type { Clock } from '../../base/clock.ts'
import type * as cri from '../../cri-types/cri-v1.ts'
import { isCriError } from '../../runtime/cri-runtime.ts'
import { readHostStats, readFileSystem } from '../../host/facts/host-stats.ts'
import type {
  ContainerStats,
  FileSystemStats,
  InterfaceStats,
  MemoryStats,
  NodeStats,
  PodStats,
} from '../../pod/state/usage.ts'
import { labelKeys } from '../../translate/identity.ts'
import type { RuntimeStats } from '../runtime/runtime-stats.ts'

export interface NodeMeterOptions {
  readonly stats: RuntimeStats
  readonly rootDir: string
  /** Where the images are; undefined if the runtime does not report it. */
  readonly imagesPath: (signal: AbortSignal) => Promise<string | undefined>
  readonly clock: Clock
}

/** Measures the host and what runs on it, when asked and at no other time: for metrics and the stats summary. */
export class NodeMeter {
  readonly #options: NodeMeterOptions

  constructor(options: NodeMeterOptions) {
    this.#options = options
  }

  /** Throws CriError, the system's error, or the signal's reason. */
  async read(signal: AbortSignal): Promise<NodeStats> {
    const { clock, imagesPath, rootDir, stats } = this.#options
    const [host, containers, sandboxes, rootFs, imageFs] = await Promise.all([
      readHostStats(),
      stats.containers(signal),
      this.#sandboxes(signal),
      measureDisk(rootDir),
      imagesPath(signal).then((path) => (path === undefined ? undefined : measureDisk(path))),
    ])
    return {
      atMs: clock.wallMs(),
      host: { ...host, rootFs, imageFs },
      pods: toPods(containers.stats, sandboxes),
    }
  }

  /** None where the runtime has no such call: containerd before 1.7. */
  async #sandboxes(signal: AbortSignal): Promise<readonly cri.PodSandboxStats[]> {
    try {
      return (await this.#options.stats.sandboxes(signal)).stats
    } catch (error) {
      if (isCriError(error, 'RUNTIME_UNSUPPORTED')) return []
      throw error
    }
  }
}

async function measureDisk(path: string): Promise<FileSystemStats> {
  const { bytes, inodes } = await readFileSystem(path)
  return {
    path,
    capacityBytes: bytes.capacity,
    availableBytes: bytes.available,
    inodes: inodes?.capacity,
    inodesFree: inodes?.available,
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
