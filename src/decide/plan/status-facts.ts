import type { ContainerId } from '../../pod/values/ids.ts'
import type { ObservedPod } from '../../pod/state/observed.ts'
import type { PodRecord } from '../../pod/state/pod-record.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { Waiting } from './pod-action.ts'
import type { ProbeVerdicts } from './pod-facts.ts'
import type { ResizeState } from './resize.ts'

/** The facts from which a pod's status is derived. */
export interface StatusFacts {
  readonly pod: Pod
  readonly record: PodRecord
  readonly observed: ObservedPod
  readonly probes: ProbeVerdicts
  /** By container name: why it isn't running, where known. */
  readonly waiting: ReadonlyMap<string, Waiting>
  /** By container name: the progress of its image pull, where one is in flight. */
  readonly pulling?: ReadonlyMap<string, string> | undefined
  /** Why the pod as a whole may not run for now. */
  readonly blocked: (Waiting & { readonly isForbidden?: boolean }) | undefined
  /** `containerd`: the scheme of container ids. */
  readonly runtimeName: string
  readonly hostIps: readonly string[]
  /** Whether its runtime handler supports recursive read-only mounts; absent while unknown. */
  readonly recursiveReadOnly?: boolean
  /** The state of its resize, if there is one. */
  readonly resize?: ResizeState | undefined
  /** Containers whose postStart hook is in flight: until it is done they aren't shown as running. */
  readonly postStarts?: ReadonlySet<ContainerId>
  readonly nowMs: number
}
