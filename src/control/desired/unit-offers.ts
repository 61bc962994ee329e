import { TurnPace } from '../../base/clock.ts'
import type { Timer } from '../../base/clock.ts'
import { errorMessage } from '../../base/errors.ts'
import { isMaybeTask, mayRollBack } from '../../decide/updates/health-gate.ts'
import {
  hashContent,
  hashDocument,
  hashTemplate,
  isTemplateUnit,
  signersOf,
  unitsOf,
  writtenOf,
  writtenTemplate,
} from '../../decide/updates/unit-content.ts'
import {
  completeCopy,
  createUnitRecord,
  fallbackOf,
  gives,
  isJudged,
  isToGoBack,
  matchCopy,
  matchWritten,
  noteFailed,
  noteGone,
  noteScale,
  offerContent,
  resumeUnit,
  revisionOf,
  takeUp,
} from '../../decide/updates/unit-revisions.ts'
import type { UnitContent } from '../../decide/updates/unit-content.ts'
import type { RevisionFailure, UnitRecord } from '../../decide/updates/unit-revisions.ts'
import type { SourceDocument } from '../../pod/objects/document.ts'
import { holdsSecrets } from '../../pod/objects/local-object.ts'
import { kindOfSource } from '../../pod/values/ids.ts'
import type { SourceName } from '../../pod/values/ids.ts'
import type { PodEnv } from '../pod/env.ts'
import type { GateSettings, UnitVerdicts } from './unit-verdicts.ts'
import { firstRetryMs, keepContent, keepOffered, longestRetryMs, setRecord, unitKey } from './units.ts'
import type { SourceUnits, Unit, Units } from './units.ts'

/**
 * What sources offer, held against the records of their units: a content that is known and one that is new, what a podd before
 * was trying, files that were renamed, and units that are given no more.
 */
export class UnitOffers {
  readonly #env: PodEnv
  readonly #settings: GateSettings
  readonly #units: Units
  readonly #verdicts: UnitVerdicts
  readonly #hashes = new WeakMap<SourceDocument, string>()
  /** podd has crashed again and again: for this time, revisions that are not known to be healthy are not tried again. */
  #distrust: Timer | undefined

  constructor(env: PodEnv, settings: GateSettings, units: Units, verdicts: UnitVerdicts) {
    this.#env = env
    this.#settings = settings
    this.#units = units
    this.#verdicts = verdicts
  }

  /** See `UpdateGate`. */
  distrustNew(forMs: number): void {
    this.#distrust = this.#env.clock.startTimer(forMs, () => {
      this.#distrust = undefined
    })
  }

  stop(): void {
    this.#distrust?.cancel()
  }

  /** Takes what a source gave last. */
  async take(known: SourceUnits): Promise<void> {
    const given = unitsOf(known.snapshot)
    const isCopy = known.snapshot.lacksSecrets === true
    for (const [name, documents] of given) {
      const unit = known.units.get(name)
      // Of thousands one may have changed.
      if (unit !== undefined && isSameList(unit.offered, documents)) unit.isCopy = isCopy
      else await this.#offer(known, name, documents, given)
    }
    this.#dropGone(known, given)
  }

  async #offer(
    { snapshot, units }: SourceUnits,
    name: string,
    documents: readonly SourceDocument[],
    given: ReadonlyMap<string, unknown>,
  ): Promise<void> {
    const { source } = snapshot
    const unit = units.get(name)
    const isCopy = snapshot.lacksSecrets === true
    const nowMs = this.#env.clock.wallMs()
    const template = isTemplateUnit({ source, unit: name }) ? documents[0] : undefined
    const writtenWhole = isCopy ? undefined : writtenOf(documents)
    const match = (known: UnitRecord, content: UnitContent): UnitContent =>
      isCopy ? matchCopy(known, content) : matchWritten(known, content, writtenWhole)
    const whole = {
      ...(template === undefined
        ? await this.#hashesOf(documents)
        : { hash: hashContent([hashTemplate(template.manifest)]) }),
      written: template === undefined ? writtenWhole : writtenTemplate(template),
      signedBy: signersOf(documents),
      pods: this.#verdicts.podsOf(documents).length,
      sourceRevision: snapshot.revision,
      digest: snapshot.digest,
    }
    if (unit !== undefined) {
      const wasCopy = unit.isCopy && !isCopy
      const before = wasCopy ? completeCopy(unit.record, whole) : unit.record
      const content = match(before, whole)
      const offered = offerContent(before, content, nowMs)
      const next = this.#units.withTrust(template === undefined ? offered : noteScale(offered, content))
      const isScaled = template !== undefined && next.latest === unit.record.latest && !unit.isUnread
      unit.isCopy = isCopy
      if (wasCopy) {
        for (const hash of unit.copies) unit.contents.delete(hash)
        unit.copies.clear()
      }
      keepOffered(unit, content.hash, documents, isCopy && content !== whole)
      const isOther = next.active !== unit.record.active
      const { isUnread } = unit
      // Also where only labels and annotations of a workload changed: those of now stand in its history.
      if (next !== unit.record || template !== undefined) {
        unit.isUnsaved = next.base !== undefined || unit.isKept || template !== undefined
        if (isOther) this.#verdicts.setActive(unit, next)
        else if (next !== unit.record) setRecord(unit, next)
        this.#units.saveSoon()
      }
      // It may be one to go back to: the offered one is not tried any more.
      if (isOther && next.active !== next.offered) return await this.#loadActive(unit, firstRetryMs)
      if (isOther || (isUnread && !unit.isUnread)) return await this.#verdicts.begin(unit)
      if (isScaled) await this.#verdicts.renew(unit)
      if (wasCopy && unit.record.active !== unit.record.offered) await this.#loadActive(unit, firstRetryMs)
      return
    }
    const found = this.#units.known.get(unitKey({ source, unit: name }))
    this.#units.known.delete(unitKey({ source, unit: name }))
    const taken = found && takeUp(found, match(found, whole), nowMs)
    const earlier = taken ?? (await this.#takeRenamed({ snapshot, units }, name, whole, given))
    const content = earlier === undefined ? whole : match(earlier, whole)
    const offered =
      earlier === undefined
        ? createUnitRecord({ source, unit: name }, content, nowMs)
        : offerContent(earlier, content, nowMs)
    const record = this.#units.withTrust(template === undefined ? offered : noteScale(offered, content))
    const fresh: Unit = {
      record,
      changes: 0,
      offered: documents,
      contents: new Map(),
      copies: new Set(),
      isCopy,
      judged: undefined,
      tracks: new Map(),
      // A pod of this name may run by it already, where podd has no record of the unit.
      isFresh: earlier !== undefined && record.latest !== earlier.latest,
      timer: undefined,
      retryAtMs: 0,
      retryMs: firstRetryMs,
      isUnread: false,
      isActing: false,
      isKept: earlier !== undefined,
      // Clients go back to any template that it had (`kubectl rollout undo`), however it did: each is kept from the first on.
      isUnsaved: earlier === undefined ? template !== undefined : record !== earlier || taken !== found,
    }
    keepContent(fresh, content.hash, documents, isCopy && content !== whole)
    units.set(name, fresh)
    await this.#adopt(fresh, record.offered === earlier?.offered)
    if (fresh.isUnsaved) this.#units.saveSoon()
  }

  /** The record of a unit with this content that its source gives by another name now: it was renamed. */
  async #takeRenamed(
    { snapshot, units }: SourceUnits,
    name: string,
    content: UnitContent,
    given: ReadonlyMap<string, unknown>,
  ): Promise<UnitRecord | undefined> {
    const { source } = snapshot
    if (kindOfSource(source) !== 'file' || !snapshot.ready || snapshot.isAnswer !== true) return undefined
    const nowMs = this.#env.clock.wallMs()
    const isGone = (each: UnitRecord): boolean =>
      each.source === source && !given.has(each.unit) && snapshot.unreadable?.includes(each.unit) !== true
    const kept = [...units.values()].flatMap(({ record, isKept }) => (isKept ? [record] : []))
    for (const before of [...kept, ...this.#units.known.values()]) {
      if (!isGone(before) || !gives(before, content)) continue
      const record = takeUp(before, content, nowMs)
      if (record === undefined) continue
      const renamed = { ...record, unit: name }
      try {
        await this.#units.move(before, renamed)
      } catch (error) {
        this.#env.logger.warn(
          { path: name, reason: errorMessage(error) },
          'cannot keep the revisions of a unit that was renamed: it starts over',
        )
        return undefined
      }
      this.#units.known.delete(unitKey(before))
      const unit = units.get(before.unit)
      if (unit !== undefined) this.#forget(units, unit)
      return renamed
    }
    return undefined
  }

  #forget(units: Map<string, Unit>, unit: Unit): void {
    this.#verdicts.end(unit)
    unit.timer?.cancel()
    units.delete(unit.record.unit)
  }

  /**
   * A unit is seen for the first time since podd began: what counts of it may be something else than what is offered.
   * @param isSame whether its source still gives what the podd before knew
   */
  async #adopt(unit: Unit, isSame: boolean): Promise<void> {
    const { changes, record } = unit
    const fallback = fallbackOf(record)
    const found = isSame ? this.#failureBefore(unit) : undefined
    if (found !== undefined && fallback !== undefined) {
      const documents = await this.#units.contentOf(unit, record, fallback.number)
      if (unit.changes !== changes) return
      if (documents !== undefined) {
        const next = noteFailed(record, found.failure, { why: found.why, mayRollBack: true })
        setRecord(unit, next)
        await this.#units.saveOrRetry(unit, next)
        this.#verdicts.tellRollBack(unit, found.failure)
      }
    }
    if (unit.record.active === unit.record.offered) await this.#verdicts.begin(unit)
    else await this.#loadActive(unit, firstRetryMs)
  }

  /** Why the active revision, which the podd before tried or was about to go back from, is not tried any further. */
  #failureBefore(
    unit: Unit,
  ): { readonly why: 'failed' | 'crashed'; readonly failure: RevisionFailure } | undefined {
    const { record, offered } = unit
    if (!isJudged(record) || !isToGoBack(record) || !this.#verdicts.isRolledBack(unit)) return undefined
    if (this.#distrust !== undefined) return { why: 'crashed', failure: this.#poddCrashed() }
    const { failure } = revisionOf(record, record.active) ?? {}
    if (failure?.isHeld === true) return undefined
    const isAllowed =
      this.#settings.updateRollback &&
      this.#verdicts.podsOf(offered).every((each) => mayRollBack(each) && !isMaybeTask(each))
    return failure !== undefined && isAllowed ? { why: 'failed', failure } : undefined
  }

  #poddCrashed(): RevisionFailure {
    return {
      reason: 'PoddCrashed',
      message:
        'podd crashed again and again while it was new; which content it crashed on is not known, so that all that was new is taken back',
      atMs: this.#env.clock.wallMs(),
      containers: [],
    }
  }

  /** podd crashed on a source: what is not known to be healthy of it is not tried again when it is followed again. */
  async distrustKnown(source: SourceName): Promise<void> {
    const { logger } = this.#env
    for (const [key, record] of this.#units.known) {
      if (record.source !== source || !isJudged(record) || !isToGoBack(record)) continue
      const next = noteFailed(record, this.#poddCrashed(), { why: 'crashed', mayRollBack: true })
      this.#units.known.set(key, next)
      await this.#units
        .saveKnown(next)
        .catch((error: unknown) =>
          logger.warn(
            { path: record.unit, reason: errorMessage(error) },
            'cannot record that podd crashed on a revision',
          ),
        )
    }
  }

  /**
   * Another revision than the offered one is active. Where its content can't be read now, that is tried again, and its pods
   * stay as they are; where it is not kept, what is offered counts.
   */
  async #loadActive(unit: Unit, retryMs: number): Promise<void> {
    const { clock, logger } = this.#env
    const { record } = unit
    const wasUnread = unit.isUnread
    // What is offered does not count meanwhile.
    unit.isUnread = true
    const isWanted = (): boolean => {
      const { active, offered } = unit.record
      return this.#units.find(record) === unit && active === record.active && active !== offered
    }
    try {
      const documents = await this.#units.readContent(unit, record, record.active)
      if (!isWanted()) return
      unit.isUnread = false
      if (documents === undefined) {
        logger.error(
          { path: record.unit },
          'the content of the active revision is lost: what is offered counts',
        )
        setRecord(unit, resumeUnit(unit.record))
        unit.isUnsaved = true
        this.#units.saveSoon()
      }
    } catch (error) {
      if (!isWanted() || this.#units.hasStopped) return
      logger.error(
        { path: record.unit, err: error },
        'cannot read the active revision: its pods stay as they are',
      )
      this.#verdicts.end(unit)
      unit.timer?.cancel()
      unit.timer = clock.startTimer(retryMs, () => {
        if (unit.isUnread) void this.#loadActive(unit, Math.min(retryMs * 2, longestRetryMs))
      })
      return
    }
    await this.#verdicts.begin(unit)
    if (wasUnread) this.#verdicts.tellChange(unit)
  }

  #dropGone({ snapshot, units }: SourceUnits, given: ReadonlyMap<string, unknown>): void {
    const isApi = kindOfSource(snapshot.source) === 'api'
    if (!snapshot.ready || (isApi ? (snapshot.unreadable ?? []).length > 0 : snapshot.isAnswer !== true))
      return
    const isGone = (name: string): boolean => !given.has(name) && snapshot.unreadable?.includes(name) !== true
    for (const [name, unit] of units) {
      if (!isGone(name)) continue
      this.#forget(units, unit)
      if (unit.isKept) this.#noteGone(unit.record, unit)
    }
    for (const record of this.#units.known.values())
      if (record.source === snapshot.source && isGone(record.unit)) this.#noteGone(record)
  }

  /** Its source doesn't give it any more: what failed of it is remembered for a while. */
  #noteGone(record: UnitRecord, unit?: Unit): void {
    const key = unitKey(record)
    const isDeleted = kindOfSource(record.source) === 'api'
    const gone = isDeleted ? undefined : noteGone(record, this.#env.clock.wallMs())
    if (gone === undefined) {
      this.#units.known.delete(key)
      void this.#units.remove(record)
      return
    }
    this.#units.known.set(key, gone)
    if (record.goneAtMs !== undefined) return
    const { logger } = this.#env
    void this.#units
      .saveKnown(gone, unit)
      .catch((error: unknown) =>
        logger.warn(
          { path: record.unit, reason: errorMessage(error) },
          'cannot record that a unit is gone: what failed of it may be tried again after a restart of podd',
        ),
      )
  }

  /** In turns: a unit may have thousands of documents. */
  async #hashesOf(
    documents: readonly SourceDocument[],
  ): Promise<Pick<UnitContent, 'hash' | 'hashWithoutSecrets'>> {
    const pace = new TurnPace(this.#env.clock)
    const hashes: string[] = []
    const others: string[] = []
    for (const document of documents) {
      if (pace.isOver) await pace.next()
      const hash = this.#hashes.get(document) ?? hashDocument(document)
      this.#hashes.set(document, hash)
      hashes.push(hash)
      if (!holdsSecrets(document.manifest)) others.push(hash)
    }
    if (pace.isOver) await pace.next()
    return {
      hash: hashContent(hashes),
      ...(others.length < hashes.length && { hashWithoutSecrets: hashContent(others) }),
    }
  }
}

function isSameList(before: readonly SourceDocument[], after: readonly SourceDocument[]): boolean {
  return before.length === after.length && before.every((document, at) => document === after[at])
}
