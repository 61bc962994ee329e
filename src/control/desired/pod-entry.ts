import { sameData } from '../../base/json.ts'
import { makesNewPod } from '../../decide/sources/diff-pod.ts'
import type { PodDocument, Problem, SourceName } from '../../pod/objects/document.ts'
import type { PodKey } from '../../pod/values/ids.ts'
import { podManifestHash } from '../../pod/values/hash.ts'
import type { ObservedPod } from '../../pod/state/observed.ts'
import type { EvictionEnd, PodEnding, PodRecord } from '../../pod/state/pod-record.ts'
import { readManifestHash } from '../../translate/identity.ts'
import type { UnreadableRecord } from '../../store/pod-records.ts'
import type { PodWorker } from '../worker/pod-worker.ts'
import type { Replacement } from './replacement.ts'

/** A document and the source that gave it. */
export interface WantedPod {
  readonly document: PodDocument
  readonly source: SourceName
}

/** One pod name. */
export interface PodEntry {
  /** The pod that holds the name; absent while none does. */
  worker: PodWorker | undefined
  /** The document that replaces it when it is gone; absent without one. */
  next: { readonly wanted: WantedPod; readonly replacement: Replacement | undefined } | undefined
  /** What waits for a pod of its name that is left alone. */
  held: WantedPod | undefined
  /** What could change in place and may not, and why. */
  refused: { readonly wanted: WantedPod; readonly message: string } | undefined
}

export function newEntry(): PodEntry {
  return { worker: undefined, next: undefined, held: undefined, refused: undefined }
}

/** Another source gives a different document of the pod's name: it must not get what the pod was given. */
export function changesHands(record: PodRecord, { document, source }: WantedPod): boolean {
  return record.source !== source && !sameData(record.manifest, document.manifest)
}

/** Whether a document makes a new pod of the name. For a pod of the API the UID decides, whatever its changes. */
export function asksForNewPod({ ref, state }: PodWorker, { pod, kept }: PodDocument): boolean {
  return kept === undefined ? makesNewPod(state.pod, pod, state.isPastChange) : kept.uid !== ref.uid
}

/** What a pod that starts again keeps: one that the API was given stays itself. */
function keptOf({ source, uid, acceptedAtMs }: PodRecord): PodDocument['kept'] {
  return source === 'api' ? { uid, createdAtMs: acceptedAtMs, metadata: {} } : undefined
}

/** Whether it terminates permanently: its name will be free. */
export function isLeaving(worker: PodWorker): boolean {
  return (
    worker.state.stage === 'stopped' ||
    worker.state.stage === 'gone' ||
    (worker.state.stage === 'ending' && worker.state.goesAway)
  )
}

/** Ends a pod within the grace period that its manifest gives it. */
export function endAsSpecified(worker: PodWorker, cause: PodEnding['cause'], message: string): void {
  const graceSeconds = worker.state.pod.spec.terminationGracePeriodSeconds
  worker.end({ cause, reason: 'Killing', message, graceSeconds })
}

/** What starts again, as a new pod, in place of one that was evicted until now; undefined where it stays evicted. */
export function readmission({ worker, next }: PodEntry, now: EvictionEnd): WantedPod | undefined {
  // Whether a pod that no source has confirmed is still wanted is not known.
  if (worker === undefined || next !== undefined || worker.state.stage === 'adopted') return undefined
  const { record, pod } = worker.state
  if (record.failed?.until !== now || isLeaving(worker)) return undefined
  // A pod that was written over the API and evicted for the node's sake stays failed, as in a cluster: its writer decides.
  if (record.source === 'api' && now === 'pressure-ends') return undefined
  const { manifest, source, path, owner } = record
  return { document: { pod, manifest, place: { path }, owner, kept: keptOf(record) }, source }
}

/** Whether it was ended for a shutdown of the host, and starts again after it. */
export function comesBack({ state }: PodWorker, { next }: PodEntry): boolean {
  const { failed, ending } = state.record
  if (failed?.until !== 'shutdown-ends' && ending?.until !== 'shutdown-ends') return false
  return ending === undefined || !state.goesAway || next !== undefined
}

/** Whether resources are kept for the version that takes the pod's place. */
export function keepsResources({ worker, next }: PodEntry): boolean {
  if (next?.replacement !== undefined) return true
  if (worker?.state.isWaiting !== true) return false
  const { admission } = worker.state
  // A pod that waits for anything but resources no longer needs those it asked for.
  return admission === undefined || (admission.kind === 'blocked' && admission.reason === 'Blocked')
}

/** Whether what the runtime holds without a record was made from this document. */
export function isOfDocument(observed: ObservedPod, { kept, manifest }: PodDocument): boolean {
  const [sandbox] = observed.sandboxes
  if (kept !== undefined && kept.uid !== observed.uid) return false
  return sandbox !== undefined && readManifestHash(sandbox.annotations) === podManifestHash(manifest)
}

/** Why the newest version of a pod is not applied; undefined where it is. */
export function notAppliedProblem(
  object: PodKey,
  { worker, next, refused }: PodEntry,
  replacementProblem: string | undefined,
): Problem | undefined {
  const message = replacementProblem ?? refused?.message ?? worker?.state.updateProblem
  if (worker === undefined || message === undefined) return undefined
  const place = (next?.wanted ?? refused?.wanted)?.document.place ?? { path: worker.state.record.path }
  return {
    severity: 'error',
    place,
    object,
    message: `the new version is not applied and the old one keeps running: ${message}`,
  }
}

/** A pod that runs and whose record can't be read. */
export function leftAloneProblem(object: PodKey, record: UnreadableRecord): Problem {
  return {
    severity: 'error',
    place: { path: record.path },
    object,
    message: `the pod runs and is left alone, because its record cannot be read: ${record.message}`,
    hint: 'run the podd that wrote the record; or remove it and restart podd, which then ends the pod or replaces it',
  }
}
