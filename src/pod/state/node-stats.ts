import type { PodUid } from '../values/ids.ts'

/** What a container has used since it was started, and holds now; left out where the runtime doesn't say. */
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
  /** Of its cgroup where the runtime tells it, else of its containers together. */
  readonly cpuNanoSeconds: number | undefined
  readonly memory: MemoryStats
  readonly swapBytes: number | undefined
  /** Empty for a pod on the host's network, and where the runtime doesn't say. */
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
}

/** What the host as a whole has used since it booted, and holds now. */
export interface HostStats {
  readonly cpuNanoSeconds: number
  readonly cpus: number
  /** Wall milliseconds. */
  readonly bootedAtMs: number
  readonly memoryCapacityBytes: number
  readonly memoryAvailableBytes: number
  /** The kubelet's measure: what is used, without the inactive page cache. */
  readonly memoryWorkingSetBytes: number
  readonly memoryUsageBytes: number
  readonly swapUsedBytes: number
  readonly processes: number | undefined
  readonly mostProcesses: number | undefined
  /** Of podd's state. */
  readonly rootFs: FileSystemStats | undefined
  /** Of the images; undefined where the runtime doesn't say where they are. */
  readonly imageFs: FileSystemStats | undefined
}

/** A measurement of the host and its pods. */
export interface NodeStats {
  /** Wall milliseconds. */
  readonly atMs: number
  readonly host: HostStats
  readonly pods: readonly PodStats[]
}
