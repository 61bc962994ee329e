import { holdsSecrets } from '../../../src/pod/objects/local-object.ts'
import { pruneRevisions } from '../../../src/decide/updates/unit-revisions.ts'
import type { UnitRecord } from '../../../src/decide/updates/unit-revisions.ts'
import type { SourceDocument } from '../../../src/pod/objects/document.ts'
import type { PodUid } from '../../../src/pod/values/ids.ts'
import type { PodRecord } from '../../../src/pod/state/pod-record.ts'
import type { KeptContent } from '../../../src/store/revisions.ts'
import type { EndedByDown, UnreadableRecord } from '../../../src/store/pod-records.ts'

/** The records as a disk keeps them: each is copied, so that nothing written later changes what was saved. */
export class MemoryRecords {
  readonly saved = new Map<PodUid, PodRecord>()
  readonly history: PodRecord[] = []
  /** What goes wrong with writes and removals from now on. */
  failure: Error | undefined
  /** Waited for before a write takes place. */
  beforeSave: (record: PodRecord) => Promise<void> = () => Promise.resolve()

  /** Files that podd can't read. */
  unreadable: UnreadableRecord[] = []

  async load(): Promise<{ records: PodRecord[]; unreadable: UnreadableRecord[] }> {
    return { records: [...this.saved.values()], unreadable: this.unreadable }
  }

  /** From now on the pod's file is one that podd can't read. */
  spoil(uid: PodUid): void {
    this.saved.delete(uid)
    this.unreadable.push({ uid, path: `/records/${uid}.json.unreadable`, message: 'it has version 9' })
  }

  async save(record: PodRecord): Promise<void> {
    const copy = structuredClone(record)
    await this.beforeSave(copy)
    if (this.failure !== undefined) throw this.failure
    this.saved.set(copy.uid, copy)
    this.history.push(copy)
  }

  async isThere(uid: PodUid): Promise<boolean> {
    return this.saved.has(uid)
  }

  ended: readonly EndedByDown[] = []

  async loadEndedByDown(): Promise<readonly EndedByDown[]> {
    return this.ended
  }

  async saveEndedByDown(pods: readonly EndedByDown[]): Promise<void> {
    if (this.failure !== undefined) throw this.failure
    this.ended = structuredClone(pods)
  }

  async checkRoom(): Promise<void> {
    if (this.failure !== undefined) throw this.failure
  }

  async remove(uid: PodUid): Promise<void> {
    if (this.failure !== undefined) throw this.failure
    this.saved.delete(uid)
  }

  named(name: string): PodRecord | undefined {
    return [...this.saved.values()].find((record) => record.name === name)
  }
}

/** The revisions of units as a disk keeps them. */
export class MemoryRevisions {
  readonly saved = new Map<
    string,
    { readonly record: UnitRecord; readonly contents: ReadonlyMap<string, readonly SourceDocument[]> }
  >()
  /** All records that were saved, in order. */
  readonly history: UnitRecord[] = []
  /** How often contents were read. */
  reads = 0
  /** Whether contents are read with their Secrets. */
  persistSecrets = true
  /** What goes wrong with writes and removals from now on. */
  failure: Error | undefined
  /** Waited for before a write takes place. */
  beforeSave: (record: UnitRecord) => Promise<void> = () => Promise.resolve()
  /** Waited for before a content is read. */
  beforeRead: () => Promise<void> = () => Promise.resolve()

  async load(): Promise<readonly UnitRecord[]> {
    return [...this.saved.values()].map(({ record }) => record)
  }

  async contents(
    { unit }: Pick<UnitRecord, 'unit'>,
    hashes: readonly string[],
  ): Promise<ReadonlyMap<string, KeptContent>> {
    this.reads += 1
    await this.beforeRead()
    const contents = this.saved.get(unit)?.contents
    return new Map(
      hashes.flatMap((hash) => {
        const documents = contents?.get(hash)
        if (documents === undefined) return []
        const kept = this.persistSecrets
          ? documents
          : documents.filter(({ manifest }) => !holdsSecrets(manifest))
        return [[hash, { documents: kept, lacksSecrets: kept.length < documents.length }] as const]
      }),
    )
  }

  async save(record: UnitRecord, given: ReadonlyMap<string, readonly SourceDocument[]>): Promise<UnitRecord> {
    const contents = new Map([...(this.saved.get(record.unit)?.contents ?? []), ...given])
    const kept = pruneRevisions(record, { most: 10, maxBytes: 1000, bytesOf: () => 1 })
    await this.beforeSave(kept)
    if (this.failure !== undefined) throw this.failure
    this.saved.set(record.unit, { record: structuredClone(kept), contents })
    this.history.push(structuredClone(kept))
    return kept
  }

  async move({ unit }: Pick<UnitRecord, 'unit'>, record: UnitRecord): Promise<void> {
    if (this.failure !== undefined) throw this.failure
    const contents = this.saved.get(unit)?.contents ?? new Map()
    this.saved.set(record.unit, { record: structuredClone(record), contents })
    this.saved.delete(unit)
  }

  async remove({ unit }: Pick<UnitRecord, 'unit'>): Promise<void> {
    if (this.failure !== undefined) throw this.failure
    this.saved.delete(unit)
  }
}
