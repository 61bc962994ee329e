/* The units that sources give, and what is kept of them on the disk: their records, and what their revisions consist of. */
import type { Timer } from '../../base/clock.ts'
import { errorMessage } from '../../base/errors.ts'
import { Semaphore } from '../../base/waits.ts'
import type { PodTrack } from '../../decide/updates/health-gate.ts'
import { asWritten } from '../../decide/updates/unit-content.ts'
import { noteTrust, revisionOf } from '../../decide/updates/unit-revisions.ts'
import type { UnitRecord } from '../../decide/updates/unit-revisions.ts'
import type { SourceDocument, SourceSnapshot } from '../../pod/objects/document.ts'
import { holdsSecrets } from '../../pod/objects/local-object.ts'
import { kindOfSource } from '../../pod/values/ids.ts'
import type { PodKey, SourceName } from '../../pod/values/ids.ts'
import type { KeptContent, RevisionStore } from '../../store/revisions.ts'
import type { PodEnv } from '../pod/env.ts'
import type { ChangedPod } from './judged-pods.ts'

/** After how long a record is written again that could not be; each time twice as long, up to the second. */
export const firstRetryMs = 30_000
export const longestRetryMs = 600_000

/** What goes forward and back together: its record, what it consists of, and how it is judged. */
export interface Unit {
  record: UnitRecord
  /** Rises with each change of the record but for what is forgotten, and where a workload is to have other pods by it. */
  changes: number
  /** What its source gives now. */
  offered: readonly SourceDocument[]
  /** By hash: of what is offered, what is active and what it goes back to, as far as it is known. */
  readonly contents: Map<string, readonly SourceDocument[]>
  /** Of these contents, those that were kept without Secrets: what is on the disk of them stays. */
  readonly copies: Set<string>
  /** What is offered is a copy that was kept without Secrets. */
  isCopy: boolean
  /** Undefined where nothing is judged. */
  judged: readonly ChangedPod[] | undefined
  readonly tracks: Map<PodKey, PodTrack>
  /** The active revision became active since podd began. */
  isFresh: boolean
  timer: Timer | undefined
  /** When it is tried again to go back from a failed revision, whose base could not be read; monotonic milliseconds. */
  retryAtMs: number
  /** How long after the next failure to do so. */
  retryMs: number
  /** The content of its active revision could not be read yet. */
  isUnread: boolean
  /** A verdict is being carried out. */
  isActing: boolean
  /** It has a file. */
  isKept: boolean
  isUnsaved: boolean
}

/** The units of one source, and what it gave last. */
export interface SourceUnits {
  snapshot: SourceSnapshot
  readonly units: Map<string, Unit>
}

/** The units by their sources. Records are written one after another; one that can't be is tried again. */
export class Units {
  readonly #env: PodEnv
  readonly #store: RevisionStore
  readonly #trusted: (source: SourceName) => readonly string[] | undefined
  readonly sources = new Map<SourceName, SourceUnits>()
  /** Records of units that no source gives: not yet since podd began, or not any more. By `unitKey`. */
  readonly known = new Map<string, UnitRecord>()
  readonly #turn = new Semaphore(1)
  #retry: Timer | undefined
  #retryMs = firstRetryMs
  hasStopped = false

  /** @param trusted see `noteTrust` */
  constructor(
    env: PodEnv,
    store: RevisionStore,
    trusted: (source: SourceName) => readonly string[] | undefined,
  ) {
    this.#env = env
    this.#store = store
    this.#trusted = trusted
  }

  /** Reads the records of an earlier podd. Never throws. */
  async load(): Promise<void> {
    for (const record of await this.#store.load()) this.known.set(unitKey(record), this.withTrust(record))
  }

  /** With what its source trusts now. */
  withTrust(record: UnitRecord): UnitRecord {
    return noteTrust(record, this.#trusted(record.source))
  }

  stop(): void {
    this.hasStopped = true
    this.#retry?.cancel()
    for (const unit of this.all()) unit.timer?.cancel()
  }

  /** In the order of the sources and of their names. */
  *all(): Generator<Unit, void> {
    for (const { units } of this.sources.values()) yield* units.values()
  }

  find({ source, unit }: Pick<UnitRecord, 'source' | 'unit'>): Unit | undefined {
    return this.sources.get(source)?.units.get(unit)
  }

  /** The documents of a revision; undefined where they are not kept whole, or can't be read now. */
  contentOf(unit: Unit, record: UnitRecord, number: number): Promise<readonly SourceDocument[] | undefined> {
    return this.readContent(unit, record, number).catch((error: unknown) => {
      this.#env.logger.error({ path: record.unit, err: error }, 'cannot read a revision')
      return undefined
    })
  }

  /** From memory or from the disk; undefined where they are not kept whole. Throws the system's error. */
  async readContent(
    unit: Unit,
    record: UnitRecord,
    number: number,
  ): Promise<readonly SourceDocument[] | undefined> {
    const hash = revisionOf(record, number)?.hash ?? ''
    const known = unit.contents.get(hash)
    if (known !== undefined) return known
    const kept = (await this.#readKept(unit, record, [hash])).get(hash)
    if (kept === undefined) return undefined
    keepContent(unit, hash, kept.documents, kept.lacksSecrets)
    return unit.contents.get(hash)
  }

  /** Those of all revisions that are kept, by their hashes, in one read; of what can't be read, those in memory. */
  async allContents(unit: Unit): Promise<ReadonlyMap<string, readonly SourceDocument[]>> {
    const { record } = unit
    const missing = record.revisions.flatMap(({ hash }) => (unit.contents.has(hash) ? [] : [hash]))
    const known = new Map(unit.contents)
    if (missing.length === 0) return known
    try {
      for (const [hash, { documents }] of await this.#readKept(unit, record, missing))
        known.set(hash, documents)
    } catch (error) {
      this.#env.logger.error({ path: record.unit, err: error }, 'cannot read the revisions of a unit')
    }
    return known
  }

  /** Throws the system's error. */
  async #readKept(
    unit: Unit,
    record: UnitRecord,
    hashes: readonly string[],
  ): Promise<ReadonlyMap<string, KeptContent>> {
    const kept = await this.#store.contents(record, hashes)
    return new Map(
      [...kept].map(([hash, { documents, lacksSecrets }]) => {
        // Its own were kept off the disk.
        const secrets = lacksSecrets ? unit.offered.filter(({ manifest }) => holdsSecrets(manifest)) : []
        // A file may have been renamed since.
        const path = kindOfSource(record.source) === 'file' ? record.unit : undefined
        const placed = [...documents, ...secrets].map((document) => placedAt(document, path))
        return [hash, { documents: placed, lacksSecrets }]
      }),
    )
  }

  /** Saves what is not on the disk, in the background. */
  saveSoon(): void {
    void this.#turn.run(async () => {
      for (const unit of this.all()) {
        if (!unit.isUnsaved || this.hasStopped) continue
        unit.isUnsaved = false
        await this.#write(unit, unit.record).catch((error: unknown) => this.#saveLater(unit, error))
      }
    })
  }

  /** Resolves when it is saved, or can't be: then it is tried again. */
  saveOrRetry(unit: Unit, record: UnitRecord): Promise<void> {
    return this.#turn
      .run(() => this.#write(unit, record))
      .catch((error: unknown) => this.#saveLater(unit, error))
  }

  /** Writes nothing of a unit that has gone meanwhile. Throws the system's error. */
  async #write(unit: Unit, record: UnitRecord): Promise<void> {
    if (this.find(record) !== unit) return
    // Before it is written: one that goes meanwhile is removed after it.
    unit.isKept = true
    const kept = await this.#store.save(record, wholeContents(unit))
    this.#retryMs = firstRetryMs
    // Revisions that there is no room for are forgotten.
    if (unit.record === record && kept.base === record.base) unit.record = kept
  }

  #saveLater(unit: Unit, error: unknown): void {
    const { logger, clock } = this.#env
    unit.isUnsaved = true
    logger.warn(
      { path: unit.record.unit, reason: errorMessage(error) },
      'cannot record the revisions of a unit: what counts of it may be lost when podd restarts, until it is written',
    )
    if (this.#retry !== undefined || this.hasStopped) return
    this.#retry = clock.startTimer(this.#retryMs, () => {
      this.#retry = undefined
      this.saveSoon()
    })
    this.#retryMs = Math.min(this.#retryMs * 2, longestRetryMs)
  }

  /** Writes a record of `known`, and what is in memory of its contents. Throws the system's error. */
  async saveKnown(record: UnitRecord, unit?: Unit): Promise<void> {
    await this.#turn.run(() => this.#store.save(record, unit === undefined ? new Map() : wholeContents(unit)))
  }

  /** The unit of the first record was renamed: its contents are those of the second. Throws the system's error. */
  async move(before: UnitRecord, renamed: UnitRecord): Promise<void> {
    await this.#turn.run(() => this.#store.move(before, renamed))
  }

  /** Where it can't be removed that is logged. */
  async remove(record: UnitRecord): Promise<void> {
    const { logger } = this.#env
    await this.#turn
      .run(async () => {
        if (this.find(record) === undefined) await this.#store.remove(record)
      })
      .catch((error: unknown) =>
        logger.warn(
          { path: record.unit, reason: errorMessage(error) },
          'cannot remove the revisions of a unit',
        ),
      )
  }
}

export function unitKey({ source, unit }: Pick<UnitRecord, 'source' | 'unit'>): string {
  return `${source}\n${unit}`
}

export function setRecord(unit: Unit, next: UnitRecord): void {
  if (next.active !== unit.record.active || next.active === next.offered) unit.isUnread = false
  unit.record = next
  unit.changes += 1
  forgetContents(unit)
}

/** Those on the disk are read again. */
export function forgetContents({ record, contents }: Unit): void {
  const needed = [record.offered, record.active, record.base].map(
    (number) => revisionOf(record, number)?.hash,
  )
  for (const hash of contents.keys()) if (!needed.includes(hash)) contents.delete(hash)
}

/** @param isCopy it was kept without Secrets */
export function keepContent(
  unit: Unit,
  hash: string,
  documents: readonly SourceDocument[],
  isCopy: boolean,
): void {
  unit.contents.set(hash, asObjectNow(unit, documents))
  if (isCopy) unit.copies.add(hash)
  else unit.copies.delete(hash)
}

/** Its source gives these documents now. */
export function keepOffered(
  unit: Unit,
  hash: string,
  documents: readonly SourceDocument[],
  isCopy: boolean,
): void {
  unit.offered = documents
  for (const [each, earlier] of unit.contents) unit.contents.set(each, asObjectNow(unit, earlier))
  keepContent(unit, hash, documents, isCopy)
}

/** What was written over the API is the object that it is now, also in an earlier version. */
function asObjectNow(
  { record, offered }: Unit,
  documents: readonly SourceDocument[],
): readonly SourceDocument[] {
  const newest = kindOfSource(record.source) === 'api' ? offered[0] : undefined
  if (newest === undefined || documents === offered) return documents
  return documents.map((document) => asWritten(document, newest))
}

/** Those that were not kept without Secrets. */
function wholeContents({ contents, copies }: Unit): ReadonlyMap<string, readonly SourceDocument[]> {
  return new Map([...contents].filter(([hash]) => !copies.has(hash)))
}

function placedAt(document: SourceDocument, path: string | undefined): SourceDocument {
  const { place } = document
  return path === undefined || place.path === path ? document : { ...document, place: { ...place, path } }
}

/** What counts. */
export function activeOf({ record, contents, offered }: Unit): readonly SourceDocument[] {
  if (record.active === record.offered) return offered
  return contents.get(revisionOf(record, record.active)?.hash ?? '') ?? offered
}
