/* Records of pods: a new one's first, their order, and what becomes of a pod that runs without one. */
import type { PodDocument } from '../../pod/objects/document.ts'
import type { ObservedPod } from '../../pod/state/observed.ts'
import { podRecordVersion } from '../../pod/state/pod-record.ts'
import type { PodRecord } from '../../pod/state/pod-record.ts'
import type { PodUid, SourceName } from '../../pod/values/ids.ts'

export interface NewPod {
  readonly uid: PodUid
  readonly document: PodDocument
  readonly source: SourceName
  /** Wall time in milliseconds. */
  readonly nowMs: number
  /** When its sandbox was created, for a running pod whose record was lost. */
  readonly createdAtMs: number | undefined
}

/** The initial record of a pod. A pod that already runs counts as admitted, and its OOM kills count from now on. */
export function newPodRecord({ uid, document, source, nowMs, createdAtMs }: NewPod): PodRecord {
  const { namespace, name } = document.pod.metadata
  return {
    version: podRecordVersion,
    uid,
    namespace,
    name,
    source,
    path: document.place.path,
    ...(document.owner === undefined ? {} : { owner: document.owner }),
    manifest: document.manifest,
    acceptedAtMs: createdAtMs ?? nowMs,
    ...(createdAtMs === undefined ? { oomKills: 0 } : { startedAtMs: createdAtMs }),
    conditions: {},
    containers: {},
  }
}

/**
 * Previously admitted pods keep their resources, ahead of pods that wait for them, whatever the clock's value when they
 * were added.
 */
export function inOrderOfAdmission(records: readonly PodRecord[]): readonly PodRecord[] {
  const waits = (record: PodRecord): number => (record.startedAtMs === undefined ? 1 : 0)
  return records.toSorted((a, b) => waits(a) - waits(b) || a.acceptedAtMs - b.acceptedAtMs)
}

/** The facts about a pod that the runtime holds and podd has no record of. */
export interface UnrecordedPod {
  readonly observed: ObservedPod
  /** There is a record of it, which this podd can't read. */
  readonly isUnreadable: boolean
  /** It was created from the manifest that is desired under its name. */
  readonly isWanted: boolean
}

/**
 * `adopt`: it gets a new record, and keeps running. `leave`: it is left alone. `end`: it is an orphan.
 *
 * An unreadable record proves that the pod is podd's, but not its state: it may have been changed in place since. So
 * the pod is left alone until a podd that can read the record decides, or the record is removed.
 */
export function decideUnrecorded({
  observed,
  isUnreadable,
  isWanted,
}: UnrecordedPod): 'adopt' | 'leave' | 'end' {
  if (isWanted) return 'adopt'
  return isUnreadable && isAlive(observed) ? 'leave' : 'end'
}

function isAlive({ sandboxes, containers }: ObservedPod): boolean {
  return (
    sandboxes.some(({ ready }) => ready) ||
    containers.some(({ state }) => state === 'running' || state === 'unknown')
  )
}
