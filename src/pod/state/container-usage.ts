import type { PodUid } from '../values/ids.ts'

/** What a container used, at a moment and over the time before it. */
export interface ContainerUsage {
  readonly uid: PodUid
  readonly container: string
  /** Wall milliseconds. */
  readonly atMs: number
  /** Over how long the CPU usage was measured. */
  readonly windowMs: number
  readonly cpuNanoCores: number
  /** The working set: what can't be taken from it without swapping or killing. */
  readonly memoryBytes: number
}

/** What the host used as a whole, at a moment and over the time before it. */
export type NodeUsage = Omit<ContainerUsage, 'uid' | 'container'>
