import type { PodUid } from '../../../src/pod/values/ids.ts'
import type { PodRecord } from '../../../src/pod/state/pod-record.ts'
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
