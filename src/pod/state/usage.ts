import type { HistogramCounts } from '../../base/histogram.ts'
import type { PodUid } from '../values/ids.ts'

/** The usage of a container at a moment, and over the time before it. */
export interface ContainerUsage {
  readonly uid: PodUid
  readonly container: string
  /** Wall milliseconds. */
  readonly atMs: number
  /** Over how long the CPU usage was measured. */
  readonly windowMs: number
  readonly cpuNanoCores: number
  /** The working set: memory that can't be reclaimed without swapping or killing. */
  readonly memoryBytes: number
}

/** The host's usage at a moment, and over the time before it. */
export type NodeUsage = Omit<ContainerUsage, 'uid' | 'container'>

/** The cumulative and current usage of a container; fields that the runtime doesn't report are absent. */
export interface ContainerStats {
  readonly name: string
  readonly id: string
  readonly cpuNanoSeconds: number | undefined
  readonly memory: MemoryStats
  readonly swapBytes: number | undefined
  /** Of its writable layer. */
  readonly layer: { readonly usedBytes: number | undefined; readonly inodesUsed: number | undefined }
}

/** Bytes, but for the faults. */
export interface MemoryStats {
  readonly workingSet: number | undefined
  readonly usage: number | undefined
  readonly rss: number | undefined
  readonly pageFaults: number | undefined
  readonly majorPageFaults: number | undefined
}

export interface InterfaceStats {
  readonly name: string
  readonly receivedBytes: number
  readonly receiveErrors: number
  readonly sentBytes: number
  readonly sendErrors: number
}

export interface PodStats {
  readonly uid: PodUid
  /** Those that run. */
  readonly containers: readonly ContainerStats[]
  /** From its cgroup where the runtime reports it, else the sum of its containers. */
  readonly cpuNanoSeconds: number | undefined
  readonly memory: MemoryStats
  readonly swapBytes: number | undefined
  /** Empty for a pod on the host's network, and where the runtime doesn't report it. */
  readonly interfaces: readonly InterfaceStats[]
  readonly processes: number | undefined
}

/** Bytes and inodes of a file system. */
export interface FileSystemStats {
  readonly path: string
  readonly capacityBytes: number
  readonly availableBytes: number
  readonly inodes: number | undefined
  readonly inodesFree: number | undefined
  /** Of what is told: of the images on their file system; left out, of all that is on it. */
  readonly usedBytes?: number | undefined
  readonly inodesUsed?: number | undefined
}

/** The cumulative and current usage of the host. */
export interface HostStats {
  readonly cpuNanoSeconds: number
  readonly cpus: number
  /** Wall milliseconds. */
  readonly bootedAtMs: number
  readonly memoryCapacityBytes: number
  readonly memoryAvailableBytes: number
  /** The kubelet's measure: used memory without the inactive page cache. */
  readonly memoryWorkingSetBytes: number
  readonly memoryUsageBytes: number
  readonly swapUsedBytes: number
  readonly processes: number | undefined
  readonly maxProcesses: number | undefined
  /** The file system of podd's state. */
  readonly rootFs: FileSystemStats | undefined
  /** The file system of the images; undefined where the runtime doesn't report it. */
  readonly imageFs: FileSystemStats | undefined
  /** That of the containers' writable layers, where it is another one. */
  readonly containerFs?: FileSystemStats | undefined
}

/** A measurement of the host and its pods. */
export interface NodeStats {
  /** Wall milliseconds. */
  readonly atMs: number
  readonly host: HostStats
  readonly pods: readonly PodStats[]
}

/** Metrics that the runtime gives of pods, under cAdvisor's names (CRI's ListPodSandboxMetrics). */
export interface RuntimeMetrics {
  readonly families: readonly RuntimeMetricFamily[]
  /** It has them, and did not give them in time or without an error. */
  readonly failed: boolean
}

export interface RuntimeMetricFamily {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge'
  readonly series: readonly {
    readonly labels: Readonly<Record<string, string>>
    readonly value: number
  }[]
}

/** As the kubelet's metrics name them. */
export type ContainerType = 'container' | 'init_container' | 'ephemeral_container'

/** The number of containers that terminated in one way. */
export interface TerminationCount {
  readonly type: ContainerType
  readonly exitCode: number
  readonly reason: string
  readonly count: number
}

/** What a pass of a pod's worker was for. */
export type PassKind = 'create' | 'update' | 'sync' | 'kill'

/** Of pods and containers since podd started, as the kubelet counts them. */
export interface PodCounts {
  readonly terminations: readonly TerminationCount[]
  readonly starts: readonly { readonly type: ContainerType; readonly count: number }[]
  /** `code`: the reason that the container waits with. */
  readonly failedStarts: readonly {
    readonly type: ContainerType
    readonly code: string
    readonly count: number
  }[]
  /** Seconds from when podd first had a pod until it ran. */
  readonly podStarts: HistogramCounts
  /** Seconds that each pass took. */
  readonly passes: readonly { readonly kind: PassKind; readonly durations: HistogramCounts }[]
}

/** The calls of one RPC of CRI since podd started. */
export interface RuntimeOperation {
  readonly rpc: string
  readonly errors: number
  /** Seconds; of all of them. */
  readonly durations: HistogramCounts
}
