import { sameData } from '../../base/json.ts'
import { podFromManifest, withDebuggers } from '../../pod/schema/default-pod.ts'
import { makesNewPod } from '../../decide/sources/diff-pod.ts'
import {
  mergeObjects,
  mergePods,
  renamedPodProblem,
  renamePod,
} from '../../decide/sources/merge-snapshots.ts'
import type { Incumbent } from '../../decide/sources/merge-snapshots.ts'
import type { PodDocument, Problem, SourceSnapshot } from '../../pod/objects/document.ts'
import type { ObjectKey } from '../../pod/objects/local-object.ts'
import type { ObservedPod } from '../../pod/state/observed.ts'
import type { EvictionEnd, PodRecord } from '../../pod/state/pod-record.ts'
import { podManifestHash } from '../../pod/values/hash.ts'
import { podKey } from '../../pod/values/ids.ts'
import type { PodKey, SourceName } from '../../pod/values/ids.ts'
import type { UnreadableRecord } from '../../store/pod-records.ts'
import { readManifestHash } from '../../translate/identity.ts'
import type { PodWorker } from '../pod/worker.ts'
import { pullsWith, refersTo } from '../serving/object-store.ts'
import type { ChangedObjects, ObjectStore } from '../serving/object-store.ts'
import type { EndedPods, PodWorkers } from './pod-workers.ts'
import type { Replacement } from './replacements.ts'

/** What the snapshots of the sources are taken by. */
interface SnapshotRules {
  /** The sources that are configured. */
  readonly sources: readonly SourceName[]
  readonly podNameSuffix: string
  /** How many pods run here at most; a source may give twice as many, of which the others wait. */
  readonly maxPods: number
}

export interface WantedChange {
  readonly wanted: ReadonlyMap<PodKey, WantedPod>
  readonly changed: ChangedObjects
}

/** What the last merge was made of, and what it came to. */
interface Merged {
  readonly snapshots: readonly SourceSnapshot[]
  readonly objectProblems: readonly Problem[]
}

/** How many pods that have not ended a source may give where `maxPods` run: twice as many, of which the others wait. */
export function boundOfSource(maxPods: number): number {
  return maxPods * 2
}

/** How many of the pods that are left out a problem names. */
const maxNamed = 10

const noObjects: ChangedObjects = new Map()

/** What each source gave last, and the objects that follow from it. */
export class SourceSnapshots {
  readonly #rules: SnapshotRules
  readonly #objects: ObjectStore
  readonly #workers: PodWorkers
  readonly #endedByDown: EndedPods
  readonly #newest = new Map<SourceName, SourceSnapshot>()
  /** Those of which pods are left out, as their sources gave them. */
  readonly #whole = new Map<SourceName, SourceSnapshot>()
  /** Pods that a source has been seen to drop while another one hasn't spoken. */
  readonly #dropped = new Map<PodKey, SourceName>()
  #problems: readonly Problem[] = []
  #merged: Merged | undefined
  /** Renamed, of those of the last snapshots. */
  readonly #renamed = new WeakMap<PodDocument, PodDocument>()
  /** Of claims whose data is on disk, until all sources have spoken: a claim is its, whichever speaks first. */
  #claimOwners: ReadonlyMap<ObjectKey, SourceName> = new Map()

  /** @param objects takes over the objects that the sources want */
  constructor(rules: SnapshotRules, objects: ObjectStore, workers: PodWorkers, endedByDown: EndedPods) {
    this.#rules = rules
    this.#objects = objects
    this.#workers = workers
    this.#endedByDown = endedByDown
  }

  all(): readonly SourceSnapshot[] {
    return [...this.#newest.values()]
  }

  /** Every source has spoken. Never without a source, as in `podd down`: nothing says what is desired then. */
  get areReady(): boolean {
    const { sources } = this.#rules
    return sources.length > 0 && sources.every((source) => this.#newest.get(source)?.ready === true)
  }

  /** A source that is configured and hasn't spoken yet. */
  isSilent(source: SourceName): boolean {
    return this.#rules.sources.includes(source) && this.#newest.get(source)?.ready !== true
  }

  /** A source that is configured and whose objects are not known yet. */
  awaitsObjects(source: SourceName): boolean {
    const merged = this.#merged?.snapshots.find((snapshot) => snapshot.source === source)
    return this.#rules.sources.includes(source) && merged?.ready !== true
  }

  /**
   * Whether a pod with this record may go if no source wants it: its own has read its file, and has been seen to drop
   * it, or all have spoken, so that none can have taken it over while podd didn't run.
   */
  mayRemove({ source, path }: Pick<PodRecord, 'source' | 'path'>, key: PodKey): boolean {
    const isKnown = this.areReady || this.#dropped.get(key) === source
    return isKnown && this.#newest.get(source)?.unreadable?.includes(path) !== true
  }

  take(snapshot: SourceSnapshot): void {
    const renamed = this.#boundPods(this.#renamePods(snapshot))
    if (renamed.pods.length < snapshot.pods.length) this.#whole.set(snapshot.source, snapshot)
    else this.#whole.delete(snapshot.source)
    if (this.areReady) this.#dropped.clear()
    else this.#noteDropped(this.#newest.get(snapshot.source), renamed)
    this.#newest.set(snapshot.source, renamed)
  }

  /** The pods of a snapshot under the names that the kubelet would give them: `<name>-<node>` (`podNameSuffix: node`). */
  #renamePods(snapshot: SourceSnapshot): SourceSnapshot {
    const { podNameSuffix: suffix } = this.#rules
    // The API gives objects the names that it was asked for.
    if (suffix === '' || snapshot.source === 'api') return snapshot
    const rename = (document: PodDocument): PodDocument => {
      const renamed = this.#renamed.get(document) ?? renamePod(document, suffix)
      this.#renamed.set(document, renamed)
      return renamed
    }
    const pods = snapshot.pods.map((document) => rename(document))
    const refusals = new Map(pods.map((document) => [document, renamedPodProblem(document, suffix)]))
    const refused = [...refusals.values()].filter((problem) => problem !== undefined)
    return {
      ...snapshot,
      pods: pods.filter((document) => refusals.get(document) === undefined),
      problems: [...snapshot.problems, ...refused],
    }
  }

  /**
   * Leaves out the pods of a snapshot that are beyond what this host could ever hold, before anything is done for each: an
   * answer of a few megabytes may have tens of thousands. Those that were started stay; of the others the first count. As in
   * a cluster, pods that have ended or were rejected stay and count for nothing (`pkg/quota/v1/evaluator/core/pods.go`
   * QuotaV1Pod, Kubernetes 1.36).
   */
  #boundPods(snapshot: SourceSnapshot): SourceSnapshot {
    const { maxPods } = this.#rules
    const bound = boundOfSource(maxPods)
    if (snapshot.pods.length <= bound) return snapshot
    const kept = new Set<PodDocument>()
    let room = bound
    for (const document of snapshot.pods) {
      const key = podKey(document.pod.metadata)
      const worker = this.#workers.find(key)
      const hasEnded = worker?.state.hasEnded === true
      if (!hasEnded && !hasStarted(worker) && !this.#endedByDown.has(key)) continue
      kept.add(document)
      if (!hasEnded) room -= 1
    }
    const left: PodDocument[] = []
    const pods = snapshot.pods.filter((document) => {
      if (kept.has(document)) return true
      room -= 1
      if (room < 0) left.push(document)
      return room >= 0
    })
    if (left.length === 0) return snapshot
    const problem = tooManyProblem(snapshot, { maxPods, followed: pods.length, left })
    return { ...snapshot, pods, problems: [...snapshot.problems, problem] }
  }

  /** Snapshots of which pods were left out, and of whose pods enough have ended since that some may be followed. */
  withRoom(): readonly SourceSnapshot[] {
    const { maxPods } = this.#rules
    return [...this.#whole.values()].filter(({ source }) => {
      const open = this.#newest.get(source)?.pods.filter(({ pod }) => {
        const worker = this.#workers.find(podKey(pod.metadata))
        return worker?.state.hasEnded !== true
      })
      return open !== undefined && open.length < boundOfSource(maxPods)
    })
  }

  #noteDropped(before: SourceSnapshot | undefined, now: SourceSnapshot): void {
    if (before?.isAnswer === true && now.isAnswer === true)
      for (const { pod } of before.pods) this.#dropped.set(podKey(pod.metadata), now.source)
    for (const { pod } of now.pods) this.#dropped.delete(podKey(pod.metadata))
  }

  /** Documents that are not followed, and why; warnings too. */
  problems(): readonly Problem[] {
    return this.#problems
  }

  /** Which source each claim with data on disk is of. To be called before any snapshot. */
  takeClaimOwners(owners: ReadonlyMap<ObjectKey, SourceName>): void {
    this.#claimOwners = owners
  }

  /**
   * Merges all of them in the order of the sources, and takes over their objects: pods that refer to a changed one
   * review it.
   */
  merge(): WantedChange {
    const snapshots = this.#rules.sources.flatMap((source) => this.#newest.get(source) ?? [])
    const before = this.#merged
    this.#merged = undefined
    const pods = mergePods(snapshots, this.#incumbent)
    const objects = this.#mergeObjects(snapshots, before)
    this.#merged = { snapshots, objectProblems: objects.problems }
    this.#problems = [...snapshots.flatMap(({ problems }) => problems), ...pods.problems, ...objects.problems]
    return { wanted: pods.wanted, changed: objects.changed }
  }

  #mergeObjects(snapshots: readonly SourceSnapshot[], before: Merged | undefined) {
    const isSettled = this.#claimOwners.size === 0
    if (before !== undefined && isSettled && givesSameObjects(before.snapshots, snapshots))
      return { problems: before.objectProblems, changed: noObjects }
    const merged = mergeObjects(snapshots, this.#incumbent, this.#objects.rules)
    // Which source has a claim's name follows from the objects from here on.
    if (this.areReady) this.#claimOwners = new Map()
    const changed = this.#objects.replace(merged.objects)
    if ([...changed.values()].some((keys) => keys.size > 0))
      for (const worker of this.#workers.all())
        if (refersTo(worker.sourcedPod, changed))
          worker.reviewReferences({ pullSecrets: pullsWith(worker.sourcedPod, changed) })
    return { problems: merged.problems, changed }
  }

  readonly #incumbent: Incumbent = (key, asking) => {
    const owner = this.#claimOwners.get(key)
    if (owner !== undefined) return { source: owner }
    const holder = this.#objects.holder(key, asking)
    if (holder !== undefined) return holder
    return this.#workers.find(key)?.state.record ?? this.#endedByDown.get(key)?.ended
  }
}

function hasStarted(worker: ReturnType<PodWorkers['find']>): boolean {
  return worker?.state.record.startedAtMs !== undefined
}

function tooManyProblem(
  { location, pods }: SourceSnapshot,
  { maxPods, followed, left }: { maxPods: number; followed: number; left: readonly PodDocument[] },
): Problem {
  const named = left.slice(0, maxNamed).map(({ pod }) => podKey(pod.metadata))
  const more = left.length - named.length
  return {
    severity: 'error',
    place: { path: location },
    message: `gives ${pods.length} pods, and at most ${maxPods} run here: ${followed} are followed, and these are not: ${named.join(', ')}${more === 0 ? '' : ` and ${more} more`}`,
    hint: 'Give fewer pods here, or raise maxPods.',
  }
}

function givesSameObjects(before: readonly SourceSnapshot[], after: readonly SourceSnapshot[]): boolean {
  return (
    before.length === after.length &&
    after.every(({ source, objects }, at) => {
      const old = before[at]
      return (
        old?.source === source &&
        old.objects.length === objects.length &&
        (old.objects === objects || objects.every((document, index) => document === old.objects[index]))
      )
    })
  )
}

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
export function asksForNewPod(
  { ref, state }: PodWorker,
  { pod, kept, owner, manifest }: PodDocument,
): boolean {
  // As in a cluster, a pod of a workload is never changed.
  if (owner !== undefined && !sameData(state.record.manifest, manifest)) return true
  if (kept !== undefined) return kept.uid !== ref.uid
  return makesNewPod(state.pod, withDebuggers(pod, state.record.debuggers), state.isPastChange)
}

/** What a pod that starts again keeps: one that the API was given stays itself. */
function keptOf({ source, uid, acceptedAtMs, owner }: PodRecord): PodDocument['kept'] {
  return source === 'api' && owner === undefined
    ? { uid, createdAtMs: acceptedAtMs, metadata: {} }
    : undefined
}

/** Whether it terminates permanently: its name will be free. */
export function isLeaving(worker: PodWorker): boolean {
  return (
    worker.state.stage === 'stopped' ||
    worker.state.stage === 'gone' ||
    (worker.state.stage === 'ending' && worker.state.goesAway)
  )
}

/** What starts again, as a new pod, in place of one that was evicted until now; undefined where it stays evicted. */
export function readmission({ worker, next }: PodEntry, now: EvictionEnd): WantedPod | undefined {
  // Whether a pod that no source has confirmed is still wanted is not known.
  if (worker === undefined || next !== undefined || worker.state.stage === 'adopted') return undefined
  const { record } = worker.state
  if (record.failed?.until !== now || isLeaving(worker)) return undefined
  // A pod that was written over the API and evicted for the node's sake stays failed, as in a cluster: its writer decides.
  if (record.source === 'api' && record.owner === undefined && now === 'pressure-ends') return undefined
  const { manifest, source, path, owner } = record
  // Without the ephemeral containers that were added to it.
  const pod = record.debuggers === undefined ? worker.state.pod : podFromManifest(manifest)
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
