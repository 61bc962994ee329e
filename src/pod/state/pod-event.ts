import type { PodRef } from '../values/ids.ts'

/** An event of a pod, as Kubernetes has it. */
export interface PodEvent {
  readonly pod: PodRef
  /** Where it is about a Job or CronJob: `pod` names that then. */
  readonly kind?: 'Job' | 'CronJob' | undefined
  /** The container it is about, if it is about one. */
  readonly container?: string | undefined
  readonly type: 'Normal' | 'Warning'
  /** `Pulled`, `Created`, `Started`, `Killing`, `BackOff`, `Failed`, … */
  readonly reason: string
  readonly message: string
}

/** An event of the node, as Kubernetes has it. */
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

/** Records events; never throws or blocks. Repeats of one event are counted, not listed. */
export interface EventRecorder {
  record(event: PodEvent): void
}
