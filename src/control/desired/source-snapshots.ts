import {
  mergeObjects,
  mergePods,
  renamePod,
  renamedPodProblem,
  selectChangedPods,
} from '../../decide/sources/merge-snapshots.ts'
import type { Incumbent } from '../../decide/sources/merge-snapshots.ts'
import type { Logger } from '../../base/logger.ts'
import type { PodDocument, Problem, SourceName, SourceSnapshot } from '../../pod/objects/document.ts'
import type { ObjectKey } from '../../pod/objects/local-object.ts'
import type { PodRecord } from '../../pod/state/pod-record.ts'
import type { PodKey } from '../../pod/values/ids.ts'
import { podKey } from '../../pod/values/ids.ts'
import { pullsWith, refersTo } from '../objects/object-store.ts'
import type { ChangedObjects, ObjectStore } from '../objects/object-store.ts'
import type { WantedPod } from './pod-entry.ts'
import type { PodWorkers } from './pod-workers.ts'

export interface SourceSnapshotsOptions {
  /** The sources that are configured. */
  readonly sources: readonly SourceName[]
  readonly podNameSuffix: string
  /** Takes over the objects that the sources want. */
  readonly objects: ObjectStore
  /** Which source each claim with data on disk is of. */
  readonly listClaimOwners: () => Promise<ReadonlyMap<ObjectKey, SourceName>>
  /** How many pods run here at most; a source may give twice as many, of which the others wait. */
  readonly maxPods: number
  /** Of the pods that there are. */
  readonly workers: () => Pick<PodWorkers, 'all' | 'find'>
  /** The pod of this name that ran when `podd down` ended it. */
  readonly endedByDown: (key: PodKey) => Pick<PodRecord, 'source' | 'path'> | undefined
  readonly logger: Logger
}

/** What is wanted now. */
export interface WantedChange {
  readonly wanted: ReadonlyMap<PodKey, WantedPod>
  /** Those that have another document since the last merge; undefined where more than that may have changed. */
  readonly changedPods: readonly PodKey[] | undefined
  readonly changed: ChangedObjects
}

/** What the last merge was made of, and what it came to. */
interface Merged {
  readonly snapshots: readonly SourceSnapshot[]
  /** Changed in place. */
  readonly wanted: Map<PodKey, WantedPod>
  readonly podProblems: readonly Problem[]
  readonly objectProblems: readonly Problem[]
}

/** How many times as many pods as run here a source may give. */
const boundFactor = 2
/** How many of the pods that are left out a problem names. */
const mostNamed = 10

const noObjects: ChangedObjects = new Map()

/** What each source gave last, and the objects that follow from it. */
export class SourceSnapshots {
  readonly #options: SourceSnapshotsOptions
  readonly #newest = new Map<SourceName, SourceSnapshot>()
  /** Pods that a source has been seen to drop while another one hasn't spoken. */
  readonly #dropped = new Map<PodKey, SourceName>()
  #problems: readonly Problem[] = []
  #merged: Merged | undefined
  /** Renamed, of those of the last snapshots. */
  readonly #renamed = new WeakMap<PodDocument, PodDocument>()
  /** Of claims whose data is on disk, until all sources have spoken: a claim is its, whichever speaks first. */
  #claimOwners: ReadonlyMap<ObjectKey, SourceName> = new Map()

  constructor(options: SourceSnapshotsOptions) {
    this.#options = options
  }

  all(): readonly SourceSnapshot[] {
    return [...this.#newest.values()]
  }

  /** Every source has spoken. */
  get areReady(): boolean {
    return this.#options.sources.every((source) => this.#newest.get(source)?.ready === true)
  }

  /** A source that is configured and hasn't spoken yet. */
  isSilent(source: SourceName): boolean {
    return this.#options.sources.includes(source) && this.#newest.get(source)?.ready !== true
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
    if (this.areReady) this.#dropped.clear()
    else this.#noteDropped(this.#newest.get(snapshot.source), renamed)
    this.#newest.set(snapshot.source, renamed)
  }

  /** The pods of a snapshot under the names that the kubelet would give them: `<name>-<node>` (`podNameSuffix: node`). */
  #renamePods(snapshot: SourceSnapshot): SourceSnapshot {
    const { podNameSuffix: suffix } = this.#options
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
   * answer of a few megabytes may have tens of thousands. Those that were started stay; of the others the first count.
   */
  #boundPods(snapshot: SourceSnapshot): SourceSnapshot {
    const { maxPods, workers, endedByDown } = this.#options
    const bound = maxPods * boundFactor
    if (snapshot.pods.length <= bound) return snapshot
    const started = new Set(
      snapshot.pods.filter(({ pod }) => {
        const key = podKey(pod.metadata)
        return hasStarted(workers().find(key)) || endedByDown(key) !== undefined
      }),
    )
    let room = bound - started.size
    const left: PodDocument[] = []
    const pods = snapshot.pods.filter((document) => {
      if (started.has(document)) return true
      room -= 1
      if (room < 0) left.push(document)
      return room >= 0
    })
    const problem = tooManyProblem(snapshot, { maxPods, followed: pods.length, left })
    return { ...snapshot, pods, problems: [...snapshot.problems, problem] }
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

  /** To be called once, before any snapshot. Never throws. */
  async loadClaimOwners(): Promise<void> {
    const { listClaimOwners, logger } = this.#options
    try {
      this.#claimOwners = await listClaimOwners()
    } catch (error) {
      logger.error({ err: error }, 'cannot read which source owns the data of claims')
    }
  }

  /**
   * Merges all of them in the order of the sources, and takes over their objects: pods that refer to a changed one
   * review it.
   */
  merge(): WantedChange {
    const { sources } = this.#options
    const snapshots = sources.flatMap((source) => this.#newest.get(source) ?? [])
    const before = this.#merged
    this.#merged = undefined
    const pods = this.#mergePods(snapshots, before)
    const objects = this.#mergeObjects(snapshots, before)
    this.#merged = {
      snapshots,
      wanted: pods.wanted,
      podProblems: pods.problems,
      objectProblems: objects.problems,
    }
    this.#problems = [...snapshots.flatMap(({ problems }) => problems), ...pods.problems, ...objects.problems]
    return { wanted: pods.wanted, changedPods: pods.changed, changed: objects.changed }
  }

  #mergePods(
    snapshots: readonly SourceSnapshot[],
    before: Merged | undefined,
  ): {
    readonly wanted: Map<PodKey, WantedPod>
    readonly problems: readonly Problem[]
    readonly changed: readonly PodKey[] | undefined
  } {
    // Who of two rivals has a name follows from the pods that there are, too.
    const isPlain = this.areReady && before?.podProblems.length === 0
    const changed = isPlain ? selectChangedPods(before.snapshots, snapshots) : undefined
    if (before === undefined || changed === undefined) {
      const { wanted, problems } = mergePods(snapshots, this.#incumbent)
      return { wanted: new Map(wanted), problems, changed: undefined }
    }
    const keys = changed.map((sourced) => {
      const key = podKey(sourced.document.pod.metadata)
      before.wanted.set(key, sourced)
      return key
    })
    return { wanted: before.wanted, problems: [], changed: keys }
  }

  #mergeObjects(
    snapshots: readonly SourceSnapshot[],
    before: Merged | undefined,
  ): { readonly problems: readonly Problem[]; readonly changed: ChangedObjects } {
    const { objects, workers } = this.#options
    const isSettled = this.#claimOwners.size === 0
    if (before !== undefined && isSettled && givesSameObjects(before.snapshots, snapshots))
      return { problems: before.objectProblems, changed: noObjects }
    const merged = mergeObjects(snapshots, this.#incumbent, objects.rules)
    // Which source has a claim's name follows from the objects from here on.
    if (this.areReady) this.#claimOwners = new Map()
    const changed = objects.replace(merged.objects)
    if ([...changed.values()].some((keys) => keys.size > 0))
      for (const worker of workers().all())
        if (refersTo(worker.sourcedPod, changed))
          worker.reviewReferences({ pullSecrets: pullsWith(worker.sourcedPod, changed) })
    return { problems: merged.problems, changed }
  }

  readonly #incumbent: Incumbent = (key, asking) => {
    const { objects, workers } = this.#options
    const owner = this.#claimOwners.get(key)
    if (owner !== undefined) return { source: owner }
    const holder = objects.holder(key, asking)
    if (holder !== undefined) return holder
    return workers().find(key)?.state.record ?? this.#options.endedByDown(key)
  }
}

function hasStarted(worker: ReturnType<PodWorkers['find']>): boolean {
  return worker?.state.record.startedAtMs !== undefined
}

function tooManyProblem(
  { location, pods }: SourceSnapshot,
  { maxPods, followed, left }: { maxPods: number; followed: number; left: readonly PodDocument[] },
): Problem {
  const named = left.slice(0, mostNamed).map(({ pod }) => podKey(pod.metadata))
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
