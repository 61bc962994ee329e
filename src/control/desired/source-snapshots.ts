import type { ObjectRules } from '../../decide/sources/merge-objects.ts'
import { mergeSnapshots } from '../../decide/sources/merge-snapshots.ts'
import type { MergedSnapshots } from '../../decide/sources/merge-snapshots.ts'
import type { Incumbent } from '../../decide/sources/settle-rivals.ts'
import type { SourceName, SourceSnapshot } from '../../pod/objects/document.ts'
import { renamePods } from './rename-pods.ts'

export interface SourceSnapshotsOptions {
  /** The sources that are configured. */
  readonly sources: readonly SourceName[]
  readonly podNameSuffix: string
}

/** What each source gave last. */
export class SourceSnapshots {
  readonly #options: SourceSnapshotsOptions
  readonly #newest = new Map<SourceName, SourceSnapshot>()

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

  take(snapshot: SourceSnapshot): void {
    this.#newest.set(snapshot.source, renamePods(snapshot, this.#options.podNameSuffix))
  }

  /** All of them together, in the order of the sources. */
  merge(incumbent: Incumbent, rules: ObjectRules): MergedSnapshots {
    const inOrder = this.#options.sources.flatMap((source) => this.#newest.get(source) ?? [])
    return mergeSnapshots(inOrder, incumbent, rules)
  }
}
