import { mergeSnapshots } from '../../decide/sources/merge-snapshots.ts'
import type { MergedSnapshots } from '../../decide/sources/merge-snapshots.ts'
import type { Incumbent } from '../../decide/sources/settle-rivals.ts'
import { isJsonObject } from '../../base/json.ts'
import type { Logger } from '../../base/logger.ts'
import type { PodDocument, Problem, SourceName, SourceSnapshot } from '../../pod/objects/document.ts'
import type { ObjectKey } from '../../pod/objects/local-object.ts'
import type { PodRecord } from '../../pod/state/pod-record.ts'
import { podKey } from '../../pod/values/ids.ts'
import { pullsWith, refersTo } from '../objects/object-store.ts'
import type { ChangedObjects, ObjectStore } from '../objects/object-store.ts'
import type { PodWorker } from '../worker/pod-worker.ts'

export interface SourceSnapshotsOptions {
  /** The sources that are configured. */
  readonly sources: readonly SourceName[]
  readonly podNameSuffix: string
  /** Takes over the objects that the sources want. */
  readonly objects: ObjectStore
  /** Which source each claim with data on disk is of. */
  readonly listClaimOwners: () => Promise<ReadonlyMap<ObjectKey, SourceName>>
  /** Of the pods that there are. */
  readonly workers: () => Iterable<PodWorker>
  readonly logger: Logger
}

/** What each source gave last, and the objects that follow from it. */
export class SourceSnapshots {
  readonly #options: SourceSnapshotsOptions
  readonly #newest = new Map<SourceName, SourceSnapshot>()
  #problems: readonly Problem[] = []
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

  /** Whether a pod with this record may go if no source wants it: all have spoken, and its own has read its file. */
  mayRemove({ source, path }: Pick<PodRecord, 'source' | 'path'>): boolean {
    return this.areReady && this.#newest.get(source)?.unreadable?.includes(path) !== true
  }

  take(snapshot: SourceSnapshot): void {
    this.#newest.set(snapshot.source, renamePods(snapshot, this.#options.podNameSuffix))
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
  merge(): Pick<MergedSnapshots, 'wanted'> & { readonly changed: ChangedObjects } {
    const { objects, sources, workers } = this.#options
    const inOrder = sources.flatMap((source) => this.#newest.get(source) ?? [])
    const merged = mergeSnapshots(inOrder, this.#incumbent, objects.rules)
    this.#problems = merged.problems
    // Which source has a claim's name follows from the objects from here on.
    if (this.areReady) this.#claimOwners = new Map()
    const changed = objects.replace(merged.objects)
    for (const worker of workers())
      if (refersTo(worker.sourcedPod, changed))
        worker.reviewReferences({ pullSecrets: pullsWith(worker.sourcedPod, changed) })
    return { wanted: merged.wanted, changed }
  }

  readonly #incumbent: Incumbent = (key, asking) => {
    const { objects, workers } = this.#options
    const owner = this.#claimOwners.get(key)
    if (owner !== undefined) return { source: owner }
    const holder = objects.holder(key, asking)
    if (holder !== undefined) return holder
    for (const worker of workers()) if (podKey(worker.ref) === key) return worker.state.record
    return undefined
  }
}

/** The pods of a snapshot under the names that the kubelet would give them: `<name>-<node>` (`podNameSuffix: node`). */
function renamePods(snapshot: SourceSnapshot, suffix: string): SourceSnapshot {
  // The API gives objects the names that it was asked for.
  return suffix === '' || snapshot.source === 'api'
    ? snapshot
    : { ...snapshot, pods: snapshot.pods.map((pod) => renamePod(pod, suffix)) }
}

function renamePod({ pod, manifest, place }: PodDocument, suffix: string): PodDocument {
  const name = `${pod.metadata.name}${suffix}`
  const metadata = isJsonObject(manifest['metadata']) ? manifest['metadata'] : {}
  return {
    pod: { ...pod, metadata: { ...pod.metadata, name } },
    manifest: { ...manifest, metadata: { ...metadata, name } },
    place,
  }
}
