import type { ObjectRules } from '../../decide/sources/merge-objects.ts'
import { mergeSnapshots } from '../../decide/sources/merge-snapshots.ts'
import type { MergedSnapshots } from '../../decide/sources/merge-snapshots.ts'
import type { Incumbent } from '../../decide/sources/settle-rivals.ts'
import { isJsonObject } from '../../base/json.ts'
import type { PodDocument, SourceName, SourceSnapshot } from '../../pod/objects/document.ts'

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

/** The pods of a snapshot under the names that the kubelet would give them: `<name>-<node>` (`podNameSuffix: node`). */
function renamePods(snapshot: SourceSnapshot, suffix: string): SourceSnapshot {
  return suffix === '' ? snapshot : { ...snapshot, pods: snapshot.pods.map((pod) => renamePod(pod, suffix)) }
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
