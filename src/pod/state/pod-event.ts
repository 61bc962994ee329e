import type { PodRef } from '../values/ids.ts'

/** Something that happened to a pod, in Kubernetes' words. */
export interface PodEvent {
  readonly pod: PodRef
  /** The container it is about, if it is about one. */
  readonly container?: string | undefined
  readonly type: 'Normal' | 'Warning'
  /** `Pulled`, `Created`, `Started`, `Killing`, `BackOff`, `Failed`, … */
  readonly reason: string
  readonly message: string
}

/** Something that happened to the host as a whole, in Kubernetes' words. */
export interface NodeEvent {
  readonly type: 'Normal' | 'Warning'
  /** `FreeDiskSpaceFailed`, `ImageGCFailed`, … */
  readonly reason: string
  readonly message: string
}

/** As EventRecorder, for what concerns the node. */
export interface NodeEventRecorder {
  recordNode(event: NodeEvent): void
}

/** Takes events; never throws, never waits. Repeats of one event are counted, not listed. */
export interface EventRecorder {
  record(event: PodEvent): void
}
