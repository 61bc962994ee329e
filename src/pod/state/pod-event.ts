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

/** Takes events; never throws, never waits. Repeats of one event are counted, not listed. */
export interface EventRecorder {
  record(event: PodEvent): void
}
