import type { JsonObject } from '../../base/json.ts'
import { sameData } from '../../base/json.ts'
import type { Admission } from '../../decide/admission/admit-pod.ts'
import {
  changedResources,
  computeHeldBack,
  podAsAllocated,
  podLevelResources,
} from '../../decide/plan/resize.ts'
import type { ResizeRefusal } from '../../decide/plan/resize.ts'
import type { PodRecord } from '../../pod/state/pod-record.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { PodState } from './pod-state.ts'

/** A manifest that changes nothing of a pod, or only what may change in place. */
export interface PodUpdate {
  readonly pod: Pod
  readonly manifest: JsonObject
  readonly place: Required<Pick<PodRecord, 'source' | 'path' | 'owner'>>
}

type Warn = (reason: string, message: string) => void

/** Takes the result of the pod's admission. Returns whether it changed. */
export function takeAdmission(state: PodState, admission: Admission, warn: Warn): boolean {
  if (sameData(state.admission, admission)) return false
  state.admission = admission
  // Known classes need no write.
  const classes = admission.kind === 'admitted' ? admission.classes : undefined
  if (classes !== undefined && !sameData(classes, state.record.classes)) state.memory.change({ classes })
  if (admission.kind !== 'admitted') warn(admission.reason, admission.message)
  return true
}

/**
 * Takes why the host has no room for a resize; undefined where it has room. Returns whether there is something to do.
 */
export function takeResizeVerdict(state: PodState, refusal: ResizeRefusal | undefined, warn: Warn): boolean {
  if (refusal === undefined) state.memory.change({ allocated: undefined })
  else if (sameData(state.resizeRefusal, refusal)) return false
  state.resizeRefusal = refusal
  if (refusal !== undefined) warn(`Resize${refusal.reason}`, refusal.message)
  return true
}

/** Takes a manifest. Returns what it changed: nothing, metadata that containers don't depend on, or the spec. */
export function takeUpdate(
  state: PodState,
  { pod, manifest, place }: PodUpdate,
): 'same' | 'metadata' | 'spec' {
  const { source, path, owner, manifest: before } = state.record
  const isKnown = sameData({ source, path, owner, manifest: before }, { ...place, manifest })
  if (isKnown && sameData(state.pod, pod)) {
    // A source gives the same objects with each snapshot: from now on they are compared by identity.
    state.pod = pod
    state.memory.shareManifest(manifest)
    return 'same'
  }
  const change = sameData(state.pod.spec, pod.spec) ? 'metadata' : 'spec'
  const allocated =
    state.admission?.kind === 'admitted'
      ? computeHeldBack(state.pod.spec, pod.spec, state.record.allocated)
      : undefined
  if (allocated === undefined) state.resizeRefusal = undefined
  const podResources = podLevelBefore(state, pod)
  state.pod = pod
  const { generation = 1 } = state.record
  state.memory.change({
    ...place,
    manifest,
    allocated,
    podResources,
    ...(change === 'spec' ? { generation: generation + 1 } : {}),
  })
  return change
}

/**
 * The pod-level resources that stay allocated whatever the new version requests; undefined where it requests the same.
 */
function podLevelBefore({ record, pod: before }: PodState, after: Pod): PodRecord['podResources'] {
  if (record.podResources !== undefined) return record.podResources
  const applied = podLevelResources(podAsAllocated(before, record.allocated).spec)
  return changedResources(applied, podLevelResources(after.spec)).length === 0 ? undefined : applied
}
