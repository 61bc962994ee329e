import type { ContainerId } from '../../pod/values/ids.ts'
import type { ObservedPod } from '../../pod/state/observed.ts'
import type { PodRecord } from '../../pod/state/pod-record.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { Waiting } from './pod-action.ts'
import type { ProbeVerdicts } from './pod-facts.ts'
import type { ResizeState } from './resize.ts'

/** All that a pod's status follows from. */
export interface StatusFacts {
  readonly pod: Pod
  readonly record: PodRecord
  readonly observed: ObservedPod
  readonly probes: ProbeVerdicts
  /** By container name: why it isn't running, where podd knows. */
  readonly waiting: ReadonlyMap<string, Waiting>
  /** By container name: how far the pull of its image is, where one is in flight. */
  readonly pulling?: ReadonlyMap<string, string> | undefined
  /** Why the pod as a whole isn't started: it may not run for now. */
  readonly blocked: Waiting | undefined
  /** `containerd`: the scheme of container ids. */
  readonly runtimeName: string
  readonly hostIps: readonly string[]
  /** Whether its runtime handler can make mounts read-only all the way down; absent where that isn't known yet. */
  readonly recursiveReadOnly?: boolean
  /** Where the change of its containers' resources stands, if there is one. */
  readonly resize?: ResizeState | undefined
  /** Containers whose postStart hook is in flight: until it is done they aren't shown as running. */
  readonly postStarts?: ReadonlySet<ContainerId>
  readonly nowMs: number
}
