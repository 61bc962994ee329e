import type { PodObject } from '../../api/resource.ts'
import { formatTime, mapInTurns, PacedWork, TurnPace } from '../../base/clock.ts'
import type { Timer } from '../../base/clock.ts'
import { errorMessage, PoddError } from '../../base/errors.ts'
import { parseSigningKey } from '../../base/minisign.ts'
import type { PoddConfig } from '../../config/options.ts'
import type { ImageUse } from '../../decide/node/plan-image-garbage.ts'
import { renamePod } from '../../decide/sources/merge-snapshots.ts'
import {
  isMaybeTask,
  judgesPods,
  judgeUnit,
  mayRollBack,
  trackPod,
} from '../../decide/updates/health-gate.ts'
import type { JudgedPod, PodFailure } from '../../decide/updates/health-gate.ts'
import {
  askForRollback,
  completeCopy,
  createUnitRecord,
  decideStep,
  describeRecord,
  explainRecord,
  fallbackOf,
  hashContent,
  hashDocument,
  isJudged,
  isToGoBack,
  gives,
  matchCopy,
  matchWritten,
  noteFailed,
  noteGone,
  noteHealthy,
  noteHeld,
  offerContent,
  problemOf,
  replaceUnits,
  resumeUnit,
  revisionOf,
  rollBackTo,
  takeUp,
  signersOf,
  unitsOf,
  writtenOf,
} from '../../decide/updates/unit-revisions.ts'
import type {
  KeptRevision,
  RevisionFailure,
  UnitContent,
  UnitRecord,
} from '../../decide/updates/unit-revisions.ts'
import { WorkloadTargets } from '../../decide/workloads/replica-pods.ts'
import { documentKey, isPodDocument } from '../../pod/objects/document.ts'
import type { PodDocument, Problem, SourceDocument, SourceSnapshot } from '../../pod/objects/document.ts'
import { holdsSecrets } from '../../pod/objects/local-object.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import { upToDateCondition } from '../../pod/state/status.ts'
import { kindOfSource, podKey } from '../../pod/values/ids.ts'
import type { PodKey, PodRef, SourceName } from '../../pod/values/ids.ts'
import type { RevisionStore } from '../../store/revisions.ts'
import type { PodEnv } from '../pod/env.ts'
import type { DesiredPods } from './desired-pods.ts'
import { describeChanged, describeFailures, listRanImages, seePod } from './judged-pods.ts'
import type { ChangedPod } from './judged-pods.ts'
import { activeOf, firstRetryMs, keepContent, longestRetryMs, unitKey, Units } from './units.ts'
import type { SourceUnits, Unit } from './units.ts'
import type { Workloads } from './workloads.ts'

/** What updates are judged by. */
type GateSettings = Pick<
  PoddConfig,
  | 'updateMinReadyMs'
  | 'updateCrashes'
  | 'updateProgressDeadlineMs'
  | 'updateRollback'
  | 'podNameSuffix'
  | 'sources'
>

/** A unit as the API shows it. */
export interface ShownUnit {
  readonly record: UnitRecord
  /** The pods that are being judged. */
  readonly judged: readonly PodKey[]
  /** Why another revision counts than the offered one, or why the offered one should not. */
  readonly message: string | undefined
}

/**
 * Between what sources offer and what counts: each unit (a file of a directory, the whole answer of a URL) has revisions. A
 * new one counts at once, and is judged by how its pods go; where it fails, the last one that was healthy counts again, and
 * the failed one is not tried again until the source gives something else. Woken by the pods' statuses and by its own
 * deadlines. Of what is written over the API each pod is a unit, and goes back only where it asks for it.
 */
export class UpdateGate {
  readonly #env: PodEnv
  readonly #settings: GateSettings
  readonly #desired: DesiredPods
  readonly #workloads: Workloads
  readonly #onChange: (source: SourceName) => void
  readonly #units: Units
  /** The units that judge a pod, by its name. */
  readonly #judging = new Map<PodKey, Set<Unit>>()
  /** The units whose active revision is not the offered one, by the pods that they have. */
  #heldBack: ReadonlyMap<PodKey, Unit> = new Map()
  readonly #hashes = new WeakMap<SourceDocument, string>()
  /** What workloads are to have by their newest templates: that is what is judged. */
  readonly #targets = new WorkloadTargets()
  readonly #due = new Set<Unit>()
  /** At the due units; each looks at all pods of theirs. */
  readonly #looks: PacedWork
  #hasStopped = false
  /** podd has crashed again and again: for this time, revisions that are not known to be healthy are not tried again. */
  #distrust: Timer | undefined

  /** @param onChange what counts of this source is something else now */
  constructor(
    env: PodEnv,
    store: RevisionStore,
    settings: GateSettings,
    desired: DesiredPods,
    workloads: Workloads,
    onChange: (source: SourceName) => void,
  ) {
    this.#env = env
    this.#units = new Units(env, store)
    this.#settings = settings
    this.#desired = desired
    this.#workloads = workloads
    this.#onChange = onChange
    this.#looks = new PacedWork(env.clock, () => this.#lookAtDue())
  }

  /** Reads the records of an earlier podd. To be called before anything is offered. Never throws. */
  async begin(): Promise<void> {
    await this.#units.load((source) => trustedKeys(this.#settings, source))
    this.#env.statuses.subscribe(({ object }) => this.#notePod(podKey(object.metadata)))
  }

  /**
   * podd has crashed again and again: what it was trying is not tried again where it is seen within this time. To be called
   * before anything is offered.
   */
  distrustNew(forMs: number): void {
    this.#distrust = this.#env.clock.startTimer(forMs, () => {
      this.#distrust = undefined
    })
  }

  stop(): void {
    this.#hasStopped = true
    this.#looks.stop()
    this.#distrust?.cancel()
    this.#units.stop()
  }

  /** Takes what a source gives; gives what counts of it. */
  async take(snapshot: SourceSnapshot): Promise<SourceSnapshot> {
    const { source } = snapshot
    const known = this.#units.sources.get(source) ?? { snapshot, units: new Map<string, Unit>() }
    known.snapshot = snapshot
    this.#units.sources.set(source, known)
    if (snapshot.isStandIn === true) {
      await this.#distrustKnown(source)
      return snapshot
    }
    const given = unitsOf(snapshot)
    const isCopy = snapshot.lacksSecrets === true
    for (const [name, documents] of given) {
      const unit = known.units.get(name)
      // Of thousands one may have changed.
      const isSame = unit !== undefined && unit.isCopy === isCopy && isSameList(unit.offered, documents)
      if (!isSame) await this.#offer(known, name, documents, given)
    }
    this.#dropGone(known, given)
    this.#showHeldBack()
    return this.compose(source) ?? snapshot
  }

  /** What counts of a source, by what it gave last; undefined where it gave nothing. */
  compose(source: SourceName): SourceSnapshot | undefined {
    const known = this.#units.sources.get(source)
    if (known === undefined) return undefined
    const { snapshot, units } = known
    const replaced = new Map(
      [...units].flatMap(([name, unit]) => {
        const documents = unit.isUnread ? [] : activeOf(unit)
        return documents === unit.offered ? [] : [[name, documents] as const]
      }),
    )
    const unread = [...units].flatMap(([name, { isUnread }]) => (isUnread ? [name] : []))
    return replaced.size === 0 ? snapshot : replaceUnits(snapshot, replaced, unread)
  }

  /** What units would go back to, whose images have to stay. */
  fallbacks(): readonly { readonly pods: readonly PodDocument[] }[] {
    return [...this.#units.all()].flatMap((unit) => {
      const fallback = fallbackOf(unit.record)
      const documents = fallback && unit.contents.get(fallback.hash)
      return documents === undefined ? [] : [{ pods: this.#podsOf(documents) }]
    })
  }

  /** The images that ran in what units would go back to, by their IDs: their names may mean others by now. */
  imagesToGoBackTo(): readonly ImageUse[] {
    return [...this.#units.all()].flatMap(({ record }) =>
      (fallbackOf(record)?.images ?? []).map(({ pod, id }) => ({ image: id, by: `pod ${pod}` })),
    )
  }

  /** See WentBack of the image puller. */
  wentBack(
    key: PodKey,
    { name, image }: Pick<ContainerSpec, 'name' | 'image'>,
  ): { readonly imageId: string | undefined } | undefined {
    const record = this.#heldBack.get(key)?.record
    if (record?.pin === undefined) return undefined
    const ran = revisionOf(record, record.active)?.images?.find(
      (each) => each.pod === key && each.container === name && each.image === image,
    )
    return { imageId: ran?.id }
  }

  /** Something about pods changed of which their statuses don't tell. */
  review(): void {
    for (const unit of this.#units.all()) this.#wake(unit)
  }

  /** The verdict of a probe on this pod changed. */
  notePod(ref: PodRef): void {
    this.#notePod(podKey(ref))
  }

  /** All units, in the order of the sources and of their names; then those that were known before, and are not given yet. */
  units(): readonly ShownUnit[] {
    const given = [...this.#units.all()].map((unit) => ({
      record: unit.record,
      judged: unit.judged?.map(({ key }) => key) ?? [],
      message: explainRecord(unit.record),
    }))
    const known = [...this.#units.known.values()].flatMap((record) =>
      record.goneAtMs === undefined
        ? [{ record, judged: [], message: explainRecord(record) ?? notGivenYet }]
        : [],
    )
    return [...given, ...known]
  }

  /** Units of which something else counts than what is offered, and why. */
  problems(): readonly Problem[] {
    return [...this.#units.all()].flatMap((unit) =>
      this.#isShown(unit) ? (problemOf(unit.record, this.#locationOf(unit)) ?? []) : [],
    )
  }

  /** The pod with a condition where another version of it is offered. */
  present(object: PodObject): PodObject {
    const unit = this.#heldBack.get(podKey(object.metadata))
    const source = object.metadata.annotations?.['podd.dev/source']
    if (unit === undefined || unit.record.source !== source) return object
    const { pin } = unit.record
    const condition = {
      type: upToDateCondition,
      status: 'False' as const,
      reason:
        pin === undefined ? 'UpdateFailed' : pin.why === 'requested' ? 'RollbackRequested' : 'RolledBack',
      message: describeRecord(unit.record) ?? '',
      ...(pin === undefined ? {} : { lastTransitionTime: formatTime(pin.atMs) }),
    }
    const others = object.status.conditions.filter(({ type }) => type !== upToDateCondition)
    const conditions = [...others, condition]
    return { ...object, status: { ...object.status, conditions } }
  }

  /**
   * Has a unit go back to a revision, or to the last healthy one before the active one, until its source gives something
   * else. Gives the number of the one that counts now. Where that can't be recorded it counts too; this is logged, and
   * writing it is tried again. Throws PoddError UPDATE_REFUSED.
   */
  rollBack(source: SourceName, unitName: string, to: number | undefined): Promise<number> {
    return this.#request(source, unitName, (record) => {
      const outcome = rollBackTo(record, to, this.#env.clock.wallMs())
      if ('refusal' in outcome) throw new PoddError('UPDATE_REFUSED', `${unitName}: ${outcome.refusal}`)
      return outcome.record
    })
  }

  /** Tries again what the source gives. Gives the number of the revision that counts now. Throws as `rollBack`. */
  resume(source: SourceName, unitName: string): Promise<number> {
    return this.#request(source, unitName, (record) => resumeUnit(record))
  }

  async #request(
    source: SourceName,
    name: string,
    change: (record: UnitRecord) => UnitRecord,
  ): Promise<number> {
    const unit = this.#units.find({ source, unit: name })
    if (unit === undefined && this.#units.known.has(unitKey({ source, unit: name })))
      throw new PoddError('UPDATE_REFUSED', `${name}: ${notGivenYet}`, {
        hint: '`podd get sources` says why; try again once it is read.',
      })
    if (unit === undefined) throw new PoddError('UPDATE_REFUSED', `there is no unit ${name}`)
    const { changes, record } = unit
    const next = change(record)
    if (next === record) return next.active
    const documents = await this.#units.contentOf(unit, next, next.active)
    const isCurrent = this.#units.find({ source, unit: name }) === unit && unit.changes === changes
    // Its source gave something else meanwhile, or it failed.
    if (!isCurrent) return await this.#request(source, name, change)
    if (documents === undefined)
      throw new PoddError(
        'UPDATE_REFUSED',
        `${name}: the content of revision ${next.active} is not kept whole`,
      )
    // Before the record is written: what its source gives meanwhile comes after the request.
    this.#setActive(unit, next, documents)
    await this.#loadBase(unit)
    await this.#units.saveOrRetry(unit, next)
    this.#env.logger.warn({ path: name, revision: next.active }, 'another revision counts on request')
    this.#tellChange(unit)
    return unit.record.active
  }

  /** The revisions of a unit that are kept, oldest first, with what they consist of. */
  async revisionsOf(source: SourceName, name: string): Promise<readonly KeptRevision[]> {
    const unit = this.#units.find({ source, unit: name })
    if (unit === undefined) return []
    const { record } = unit
    const kept: KeptRevision[] = []
    for (const { number, atMs } of record.revisions) {
      const documents = await this.#units.contentOf(unit, record, number)
      if (documents !== undefined) kept.push({ number, atMs, documents })
    }
    forgetContents(unit)
    return kept
  }

  // What is offered.

  async #offer(
    { snapshot, units }: SourceUnits,
    name: string,
    documents: readonly SourceDocument[],
    given: ReadonlyMap<string, unknown>,
  ): Promise<void> {
    const { source } = snapshot
    const unit = units.get(name)
    const isCopy = snapshot.lacksSecrets === true
    if (unit !== undefined && isSameList(unit.offered, documents)) {
      unit.isCopy = isCopy
      return
    }
    const nowMs = this.#env.clock.wallMs()
    const whole = {
      ...(await this.#hashesOf(documents)),
      written: isCopy ? undefined : writtenOf(documents),
      signedBy: signersOf(documents),
      pods: this.#podsOf(documents).length,
      sourceRevision: snapshot.revision,
      digest: snapshot.digest,
    }
    if (unit !== undefined) {
      const wasCopy = unit.isCopy && !isCopy
      const before = wasCopy ? completeCopy(unit.record, whole) : unit.record
      const content = isCopy ? matchCopy(before, whole) : matchWritten(before, whole)
      const next = offerContent(before, content, nowMs)
      unit.offered = documents
      unit.isCopy = isCopy
      if (wasCopy) {
        for (const hash of unit.copies) unit.contents.delete(hash)
        unit.copies.clear()
      }
      keepContent(unit, content.hash, documents, isCopy && content !== whole)
      if (next !== unit.record) {
        const isOther = next.active !== unit.record.active
        unit.isUnsaved = next.base !== undefined || unit.isKept
        if (isOther) this.#setActive(unit, next, documents)
        else this.#setRecord(unit, next)
        this.#units.saveSoon()
        if (isOther) return await this.#loadBase(unit)
      }
      if (wasCopy && unit.record.active !== unit.record.offered) await this.#loadActive(unit, firstRetryMs)
      return
    }
    const found = this.#units.known.get(unitKey({ source, unit: name }))
    this.#units.known.delete(unitKey({ source, unit: name }))
    const match = isCopy ? matchCopy : matchWritten
    const taken = found && takeUp(found, match(found, whole), nowMs)
    const earlier = taken ?? (await this.#takeRenamed({ snapshot, units }, name, whole, given))
    const content = earlier === undefined ? whole : match(earlier, whole)
    const record =
      earlier === undefined
        ? createUnitRecord({ source, unit: name }, content, nowMs)
        : offerContent(earlier, content, nowMs)
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
      isUnsaved: earlier !== undefined && (record !== earlier || taken !== found),
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
    this.#judge(unit, undefined)
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
        this.#setRecord(unit, next)
        await this.#units.saveOrRetry(unit, next)
        this.#tellRollBack(unit, found.failure)
      }
    }
    if (unit.record.active === unit.record.offered) await this.#loadBase(unit)
    else await this.#loadActive(unit, firstRetryMs)
  }

  /** Why the active revision, which the podd before tried or was about to go back from, is not tried any further. */
  #failureBefore(
    unit: Unit,
  ): { readonly why: 'failed' | 'crashed'; readonly failure: RevisionFailure } | undefined {
    const { record, offered } = unit
    if (!isJudged(record) || !isToGoBack(record) || !this.#isRolledBack(unit)) return undefined
    if (this.#distrust !== undefined) return { why: 'crashed', failure: this.#poddCrashed() }
    const { failure } = revisionOf(record, record.active) ?? {}
    if (failure?.isHeld === true) return undefined
    const isAllowed =
      this.#settings.updateRollback &&
      this.#podsOf(offered).every((each) => mayRollBack(each) && !isMaybeTask(each))
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
  async #distrustKnown(source: SourceName): Promise<void> {
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
    const { changes, record } = unit
    const wasUnread = unit.isUnread
    try {
      const documents = await this.#units.readContent(unit, record, record.active)
      if (unit.changes !== changes) return
      unit.isUnread = false
      if (documents === undefined) {
        logger.error(
          { path: record.unit },
          'the content of the active revision is lost: what is offered counts',
        )
        this.#setRecord(unit, resumeUnit(record))
        unit.isUnsaved = true
        this.#units.saveSoon()
      }
    } catch (error) {
      if (unit.changes !== changes || this.#hasStopped) return
      logger.error(
        { path: record.unit, err: error },
        'cannot read the active revision: its pods stay as they are',
      )
      unit.isUnread = true
      unit.timer = clock.startTimer(retryMs, () => {
        if (unit.isUnread) void this.#loadActive(unit, Math.min(retryMs * 2, longestRetryMs))
      })
      return
    }
    await this.#loadBase(unit)
    if (wasUnread) this.#tellChange(unit)
  }

  /** Begins to judge the active revision, where it is to be, against the one to go back to. */
  async #loadBase(unit: Unit): Promise<void> {
    const { changes, record } = unit
    // Of one that counts for its healthy pods alone, the others are judged still.
    const before =
      record.base === undefined || record.base === record.active || !isJudged(record)
        ? undefined
        : await this.#units.contentOf(unit, record, record.base)
    if (unit.changes !== changes) return
    const judged = isJudged(record) ? await this.#selectJudged(unit, before) : undefined
    if (unit.changes !== changes) return
    unit.tracks.clear()
    this.#judge(unit, judged)
  }

  /**
   * The pods of the active revision that are judged. In turns: a unit may have tens of thousands.
   * @param before the revision to go back to
   */
  async #selectJudged(
    unit: Unit,
    before: readonly SourceDocument[] | undefined,
  ): Promise<readonly ChangedPod[]> {
    const earlier = before && this.#withPods(before)
    const active = this.#withPods(activeOf(unit))
    const isJudgedPod = judgesPods(earlier, active)
    const known = new Map(
      earlier?.flatMap((document) =>
        isPodDocument(document) ? [[documentKey(document), document] as const] : [],
      ),
    )
    const named = (document: PodDocument): PodDocument => this.#named(document)
    const judged = await mapInTurns(this.#env.clock, active, (document) =>
      isPodDocument(document) && isJudgedPod(document)
        ? describeChanged(this.#desired, document, known.get(documentKey(document)), named, unit.isFresh)
        : undefined,
    )
    return judged.filter((each) => each !== undefined)
  }

  #judge(unit: Unit, judged: readonly ChangedPod[] | undefined): void {
    for (const { key } of unit.judged ?? []) {
      const units = this.#judging.get(key)
      units?.delete(unit)
      if (units?.size === 0) this.#judging.delete(key)
    }
    unit.judged = judged
    for (const { key } of judged ?? []) {
      const units = this.#judging.get(key)
      if (units === undefined) this.#judging.set(key, new Set([unit]))
      else units.add(unit)
    }
    this.#wake(unit)
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

  /** As its pod is called here. */
  #named(document: PodDocument): PodDocument {
    const { podNameSuffix } = this.#settings
    // What was written over the API has the name that it was written with.
    return podNameSuffix === 'node' && document.kept === undefined
      ? renamePod(document, `-${this.#env.hostName}`)
      : document
  }

  /** The pods among these, and those that are made from others. */
  #podsOf(documents: readonly SourceDocument[]): readonly PodDocument[] {
    return documents.flatMap((each) => (isPodDocument(each) ? [each] : this.#targets.podsOf(each)))
  }

  /** Those that count of a unit, by the names that they have here. */
  #podsHere(unit: Unit): readonly PodDocument[] {
    return this.#podsOf(activeOf(unit)).map((document) => this.#named(document))
  }

  #withPods(documents: readonly SourceDocument[]): readonly SourceDocument[] {
    const made = documents.flatMap((each) => (isPodDocument(each) ? [] : this.#targets.podsOf(each)))
    return made.length === 0 ? documents : [...documents, ...made]
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

  // Verdicts.

  #notePod(key: PodKey): void {
    for (const unit of this.#judging.get(key) ?? []) this.#wake(unit)
  }

  #wake(unit: Unit): void {
    if (unit.judged === undefined || this.#hasStopped) return
    this.#due.add(unit)
    this.#looks.ask()
  }

  async #lookAtDue(): Promise<void> {
    const due = [...this.#due]
    this.#due.clear()
    const pace = new TurnPace(this.#env.clock)
    for (const unit of due) {
      try {
        await this.#look(unit, pace)
      } catch (error) {
        this.#env.logger.error({ path: unit.record.unit, err: error }, 'cannot judge a revision')
      }
    }
  }

  /** In turns: a unit may have thousands of pods. What changes meanwhile counts at the next look. */
  async #look(unit: Unit, pace: TurnPace): Promise<void> {
    const { clock } = this.#env
    const { judged } = unit
    if (judged === undefined || unit.isActing || this.#hasStopped) return
    unit.timer?.cancel()
    const nowMs = clock.monotonicMs()
    const gate = {
      minReadyMs: this.#settings.updateMinReadyMs,
      crashes: this.#settings.updateCrashes,
      progressDeadlineMs: this.#settings.updateProgressDeadlineMs,
    }
    const pods: JudgedPod[] = []
    for (const each of judged) {
      if (pace.isOver) {
        await pace.next()
        if (unit.judged !== judged || unit.isActing || this.#hasStopped) return
      }
      const sight = seePod(this.#env, this.#desired, this.#workloads, unit.record.source, each)
      const track = trackPod(unit.tracks.get(each.key), sight, gate, nowMs)
      unit.tracks.set(each.key, track)
      pods.push({ pod: each.key, track })
    }
    const verdict = judgeUnit(pods, gate, nowMs)
    if (verdict.kind === 'healthy') {
      void this.#pass(unit)
      return
    }
    if (verdict.wakeAtMs !== undefined)
      unit.timer = clock.startTimer(verdict.wakeAtMs - nowMs, () => this.#wake(unit))
    if (verdict.kind === 'progressing') return
    const step = decideStep(unit.record, verdict, {
      mayGoBack: this.#mayGoBack(unit, verdict.failures),
      isWhole: this.#podsOf(activeOf(unit)).length === judged.length,
    })
    if (step === 'wait') return
    if (step === 'hold')
      return void this.#hold(unit, verdict.failures, verdict.kind === 'held' && verdict.rest === 'may-count')
    if (step === 'fail' || unit.retryAtMs <= nowMs) return void this.#fail(unit, verdict.failures)
    unit.timer?.cancel()
    const atMs = Math.min(unit.retryAtMs, verdict.wakeAtMs ?? Infinity)
    unit.timer = clock.startTimer(atMs - nowMs, () => this.#wake(unit))
  }

  /** The active revision is healthy. That counts once it is recorded, also where another one has come meanwhile. */
  async #pass(unit: Unit): Promise<void> {
    const { logger } = this.#env
    const { unit: path, active } = unit.record
    unit.isActing = true
    try {
      const images = listRanImages(this.#env, this.#desired, this.#podsHere(unit))
      // A pod that was written over the API once, and asks for nothing, costs no write.
      if (this.#isRolledBack(unit) || unit.record.latest > 1)
        await this.#units.saveOrRetry(unit, noteHealthy(unit.record, active, images))
      const isGone = this.#units.find(unit.record) !== unit
      if (isGone || this.#hasStopped || revisionOf(unit.record, active) === undefined) return
      const isActive = unit.record.active === active
      this.#setRecord(unit, noteHealthy(unit.record, active, images))
      logger.debug({ path, revision: active }, 'the revision is healthy')
      this.#showHeldBack()
      if (isActive) return this.#judge(unit, undefined)
      unit.isUnsaved = true
      this.#units.saveSoon()
      await this.#loadBase(unit)
    } catch (error) {
      logger.error({ path, err: error }, 'cannot note that a revision is healthy')
    } finally {
      unit.isActing = false
      this.#wake(unit)
    }
  }

  /** The active revision failed: what failed is recorded before anything else counts. */
  async #fail(unit: Unit, failures: readonly PodFailure[]): Promise<void> {
    const { clock, logger } = this.#env
    const { changes, record } = unit
    const isCurrent = (): boolean => unit.changes === changes && !this.#hasStopped
    unit.isActing = true
    try {
      const failure = await describeFailures(this.#env, this.#desired, failures)
      if (failure === undefined) return
      const fallback = fallbackOf(record)
      const documents = fallback && (await this.#units.contentOf(unit, record, fallback.number))
      if (!isCurrent()) return
      const isAllowed = this.#mayGoBack(unit, failures)
      const isPossible = isAllowed && documents !== undefined
      const next = noteFailed(record, failure, { why: 'failed', mayRollBack: isPossible })
      if (isAllowed && !isPossible && isToGoBack(unit.record)) {
        const known = revisionOf(record, record.active)
        const isKnown = known?.verdict === 'failed' && known.failure?.isHeld !== true
        unit.retryAtMs = clock.monotonicMs() + unit.retryMs
        unit.retryMs = Math.min(unit.retryMs * 2, longestRetryMs)
        logger.error(
          { path: record.unit, ...(fallback && { revision: fallback.number }) },
          'the revision to go back to cannot be read: it is tried again',
        )
        if (isKnown) return
      }
      if (record.base !== undefined) await this.#units.saveOrRetry(unit, next)
      if (!isCurrent()) return
      if (this.#isShown(unit)) this.#tellLate(failures)
      this.#setRecord(unit, next)
      if (next.active === record.active) {
        if (this.#isShown(unit))
          logger.warn(
            { path: record.unit, revision: record.active, reason: failure.message },
            'a revision failed, and stays',
          )
        this.#showHeldBack()
        return
      }
      this.#judge(unit, undefined)
      this.#tellRollBack(unit, failure)
      this.#tellChange(unit)
    } catch (error) {
      logger.error({ path: record.unit, err: error }, 'cannot carry out what follows from a failed revision')
    } finally {
      unit.isActing = false
      this.#wake(unit)
    }
  }

  /** Pods of the active revision have not come into effect by their deadline. That is recorded, and nothing is undone. */
  async #hold(unit: Unit, failures: readonly PodFailure[], mayCount: boolean): Promise<void> {
    const { logger } = this.#env
    const { changes, record } = unit
    unit.isActing = true
    try {
      const isKnown = revisionOf(record, record.active)?.verdict === 'failed'
      const failure = await describeFailures(this.#env, this.#desired, failures)
      if (failure === undefined || unit.changes !== changes || this.#hasStopped) return
      const next = noteHeld(
        record,
        failure,
        mayCount,
        listRanImages(this.#env, this.#desired, this.#podsHere(unit)),
      )
      const isWorth = mayCount ? this.#isRolledBack(unit) : record.base !== undefined
      if (isWorth) await this.#units.saveOrRetry(unit, next)
      if (unit.changes !== changes || this.#hasStopped) return
      this.#setRecord(unit, next)
      this.#showHeldBack()
      if (isKnown || !this.#isShown(unit)) return
      this.#tellLate(failures)
      logger.warn(
        { path: record.unit, revision: record.active, reason: failure.message },
        'a revision is not in effect as a whole, and stays',
      )
    } catch (error) {
      logger.error({ path: record.unit, err: error }, 'cannot note that a revision is not in effect')
    } finally {
      unit.isActing = false
      this.#wake(unit)
    }
  }

  #tellLate(failures: readonly PodFailure[]): void {
    for (const { pod, reason, message } of failures) {
      const worker = this.#desired.holder(pod)
      if (reason === 'ProgressDeadlineExceeded' && worker !== undefined)
        this.#env.events.record({ pod: worker.ref, type: 'Warning', reason, message })
    }
  }

  /** Whether what fails of it is undone. */
  #isRolledBack({ record, offered }: Pick<Unit, 'record' | 'offered'>): boolean {
    return kindOfSource(record.source) !== 'api' || askForRollback(offered)
  }

  /** Whether people are told how it does, beside its pods. */
  #isShown(unit: Unit): boolean {
    return unit.record.pin !== undefined || this.#isRolledBack(unit)
  }

  #mayGoBack(unit: Unit, failures: readonly PodFailure[]): boolean {
    if (!this.#settings.updateRollback || !this.#isRolledBack(unit)) return false
    const all = new Map(unit.judged?.map((judged) => [judged.key, judged]))
    return failures.every(({ pod }) => {
      const judged = all.get(pod)
      return judged !== undefined && !judged.isTask && mayRollBack(judged.document)
    })
  }

  #tellRollBack(unit: Unit, failure: RevisionFailure): void {
    const { events, logger } = this.#env
    const { record } = unit
    const message = `revision ${record.offered} of ${record.unit} failed, and revision ${record.active} counts again: ${failure.message}`
    logger.warn(
      { path: record.unit, revision: record.active, reason: failure.message },
      'the unit is rolled back',
    )
    events.recordNode({ type: 'Warning', reason: 'RolledBack', message })
    for (const { pod } of this.#podsHere(unit)) {
      const worker = this.#desired.holder(podKey(pod.metadata))
      if (worker !== undefined)
        events.record({ pod: worker.ref, type: 'Warning', reason: 'RolledBack', message })
    }
  }

  // Records.

  /** Another revision is active. */
  #setActive(unit: Unit, next: UnitRecord, documents: readonly SourceDocument[]): void {
    unit.isFresh = true
    unit.retryAtMs = 0
    unit.retryMs = firstRetryMs
    // What was judged is another revision's.
    this.#judge(unit, undefined)
    const hash = revisionOf(next, next.active)?.hash ?? ''
    keepContent(unit, hash, documents, unit.copies.has(hash))
    this.#setRecord(unit, next)
  }

  #setRecord(unit: Unit, next: UnitRecord): void {
    unit.record = next
    unit.changes += 1
    unit.isUnread = false
    forgetContents(unit)
  }

  #tellChange(unit: Unit): void {
    this.#showHeldBack()
    this.#onChange(unit.record.source)
  }

  /** Which pods have a condition follows from the records. */
  #showHeldBack(): void {
    const before = this.#heldBack
    const after = new Map<PodKey, Unit>()
    for (const unit of this.#units.all()) {
      if (describeRecord(unit.record) === undefined || !this.#isShown(unit)) continue
      for (const { pod } of this.#podsHere(unit)) after.set(podKey(pod.metadata), unit)
    }
    if (before.size === 0 && after.size === 0) return
    this.#heldBack = after
    for (const key of new Set([...before.keys(), ...after.keys()])) {
      const worker = this.#desired.holder(key)
      if (worker !== undefined) this.#env.statuses.refresh(worker.ref.uid)
    }
  }

  #locationOf({ record }: Unit): string {
    const location = this.#units.sources.get(record.source)?.snapshot.location
    return kindOfSource(record.source) === 'file' ? record.unit : (location ?? record.unit)
  }
}

/** Also while the last set that worked runs in place of its source. */
const notGivenYet = 'its source has not been followed since podd started'

/** The IDs of the keys that a source trusts; undefined where it demands no signature. */
function trustedKeys({ sources }: GateSettings, name: SourceName): readonly string[] | undefined {
  const keys = sources.find((each) => `${each.kind}:${each.name}` === name)?.verify?.keys
  return keys?.flatMap((key) => parseSigningKey(key)?.id ?? [])
}

/** Those on the disk are read again. */
function forgetContents({ record, contents }: Unit): void {
  const needed = [record.offered, record.active, record.base].map(
    (number) => revisionOf(record, number)?.hash,
  )
  for (const hash of contents.keys()) if (!needed.includes(hash)) contents.delete(hash)
}

function isSameList(before: readonly SourceDocument[], after: readonly SourceDocument[]): boolean {
  return before.length === after.length && before.every((document, at) => document === after[at])
}
