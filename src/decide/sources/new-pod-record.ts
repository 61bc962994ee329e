import type { PodDocument, SourceName } from '../../pod/objects/document.ts'
import type { PodUid } from '../../pod/values/ids.ts'
import { podRecordVersion } from '../../pod/state/pod-record.ts'
import type { PodRecord } from '../../pod/state/pod-record.ts'

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
