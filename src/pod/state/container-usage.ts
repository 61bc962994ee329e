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
