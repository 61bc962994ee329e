import type { PodObject } from '../../api/resource.ts'
import { formatTime, mapInTurns, PacedWork, TurnPace } from '../../base/clock.ts'
import type { Timer } from '../../base/clock.ts'
import { errorMessage, PoddError } from '../../base/errors.ts'
import { canonicalJson, sameData } from '../../base/json.ts'
import type { JsonObject } from '../../base/json.ts'
import { Semaphore } from '../../base/waits.ts'
import { parseDuration } from '../../config/option-type.ts'
import type { PoddConfig } from '../../config/options.ts'
import { isRestartableInit } from '../../decide/plan/backoff.ts'
import { renamePod } from '../../decide/sources/merge-snapshots.ts'
import { podGeneration } from '../../decide/status/derive-status.ts'
import {
  changedContainers,
  countCrashes,
  explainUnready,
  isMaybeTask,
  judgesPods,
  judgeUnit,
  mayRollBack,
  trackPod,
} from '../../decide/updates/health-gate.ts'
import type {
  HeldBy,
  JudgedPod,
  PodFailure,
  PodSight,
  PodTrack,
  UnitVerdict,
} from '../../decide/updates/health-gate.ts'
import {
  completeCopy,
  createUnitRecord,
  describeRecord,
  explainRecord,
  fallbackOf,
  isJudged,
  isToGoBack,
  matchCopy,
  noteFailed,
  noteHealthy,
  noteGone,
  noteHeld,
  offerContent,
  problemOf,
  resumeUnit,
  revisionOf,
  rollBackTo,
  takeUp,
} from '../../decide/updates/unit-revisions.ts'
import type {
  RanImage,
  RevisionFailure,
  UnitContent,
  UnitRecord,
} from '../../decide/updates/unit-revisions.ts'
import { WorkloadTargets } from '../../decide/workloads/replica-pods.ts'
import { documentKey, isObjectDocument, isPodDocument } from '../../pod/objects/document.ts'
import type { PodDocument, Problem, SourceDocument, SourceSnapshot } from '../../pod/objects/document.ts'
import { holdsSecrets } from '../../pod/objects/local-object.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import { allContainers } from '../../pod/schema/pod-resources.ts'
import { digestText } from '../../pod/values/hash.ts'
import { kindOfSource, podKey } from '../../pod/values/ids.ts'
import type { PodKey, PodRef, SourceName } from '../../pod/values/ids.ts'
import type { RevisionStore } from '../../store/revisions.ts'
import { restartAnnotation } from '../../translate/config-hash.ts'
import type { ImageUse } from '../../decide/node/plan-image-garbage.ts'
import type { PodEnv } from '../pod/env.ts'
import { hasOutdatedContainers } from '../pod/live-pass.ts'
import type { PodWorker } from '../pod/worker.ts'
import { gatherEvidence } from './failure-evidence.ts'

/** On a pod: its own `updates.progressDeadline`. */
const deadlineAnnotation = 'podd.dev/progress-deadline'
/** The condition of pods of which another version is offered than the one that counts. */
const conditionType = 'podd.dev/UpToDate'

/** After how long a record is written again that could not be; each time twice as long, up to the second. */
const firstRetryMs = 30_000
const longestRetryMs = 600_000

/** What updates are judged by. */
export type GateOptions = Pick<
  PoddConfig,
  'updateMinReadyMs' | 'updateCrashes' | 'updateProgressDeadlineMs' | 'updateRollback'
>

/** The pods that there are, and who is told of changes. */
interface GateSurroundings {
  /** What the names of pods are given in addition. */
  readonly podNameSuffix: string
  /** The pod that has a name. */
  readonly holder: (key: PodKey) => PodWorker | undefined
  /** Why the newest version of the pod of a name is not applied. */
  readonly updateProblem: (key: PodKey) => string | undefined
  /** Whether its workload doesn't have it by its newest template yet, since others come first. */
  readonly awaitsTurn: (source: SourceName, document: PodDocument) => boolean
  /** What counts of this source is something else now. */
  readonly onChange: (source: SourceName) => void
}

/** A pod that is judged. */
interface Judged {
  /** As the pod's record has it. */
  readonly document: PodDocument
  /** What its record would have in the revision to go back to. */
  readonly before: JsonObject | undefined
  readonly key: PodKey
  /** The UID of the pod of this name when the revision became active; undefined without one, and where that is not known. */
  readonly uidBefore: string | undefined
  /**
   * It is to end by itself, and what it takes the place of has ended, or is not known: it is not undone for its failure, as
   * what has been done would be done again.
   */
  readonly isTask: boolean
  /** How often the change restarts each container without being a crash. */
  readonly restarts: number
  /** The containers whose crashes count. */
  readonly changed: ReadonlySet<string>
}

interface Unit {
  record: UnitRecord
  /** Rises with each change of the record but for what is forgotten. */
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
  judged: readonly Judged[] | undefined
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
interface SourceUnits {
  snapshot: SourceSnapshot
  readonly units: Map<string, Unit>
}

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
 * deadlines. What is written over the API passes through.
 */
export class UpdateGate {
  readonly #env: PodEnv
  readonly #store: RevisionStore
  readonly #options: GateOptions
  readonly #pods: GateSurroundings
  /** Records of an earlier podd whose units no source has given yet. */
  readonly #known = new Map<string, UnitRecord>()
  readonly #sources = new Map<SourceName, SourceUnits>()
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
  readonly #turn = new Semaphore(1)
  #retry: Timer | undefined
  #retryMs = firstRetryMs
  #hasStopped = false
  /** podd has crashed again and again: for this time, revisions that are not known to be healthy are not tried again. */
  #distrust: Timer | undefined

  constructor(env: PodEnv, store: RevisionStore, options: GateOptions, pods: GateSurroundings) {
    this.#env = env
    this.#looks = new PacedWork(env.clock, () => this.#lookAtDue())
    this.#store = store
    this.#options = options
    this.#pods = pods
  }

  /** Reads the records of an earlier podd. To be called before anything is offered. Never throws. */
  async begin(): Promise<void> {
    for (const record of await this.#store.load()) this.#known.set(unitKey(record), record)
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
    this.#retry?.cancel()
    this.#distrust?.cancel()
    for (const unit of this.#all()) unit.timer?.cancel()
  }

  /** Takes what a source gives; gives what counts of it. */
  async take(snapshot: SourceSnapshot): Promise<SourceSnapshot> {
    const { source } = snapshot
    const known = this.#sources.get(source) ?? { snapshot, units: new Map<string, Unit>() }
    known.snapshot = snapshot
    this.#sources.set(source, known)
    if (kindOfSource(source) === 'api') return snapshot
    if (snapshot.isStandIn === true) {
      await this.#distrustKnown(source)
      return snapshot
    }
    const given = unitsOf(snapshot)
    for (const [name, documents] of given) await this.#offer(known, name, documents, given)
    this.#dropGone(known, given)
    this.#showHeldBack()
    return this.compose(source) ?? snapshot
  }

  /** What counts of a source, by what it gave last; undefined where it gave nothing. */
  compose(source: SourceName): SourceSnapshot | undefined {
    const known = this.#sources.get(source)
    if (known === undefined) return undefined
    const { snapshot, units } = known
    const replaced = [...units].flatMap(([name, unit]) => {
      const documents = unit.isUnread ? [] : activeOf(unit)
      return documents === unit.offered ? [] : [[name, documents] as const]
    })
    if (replaced.length === 0) return snapshot
    const names = new Map(replaced)
    const kept = (document: SourceDocument): boolean => !names.has(unitOf(snapshot, document))
    const active = replaced.flatMap(([, documents]) => documents)
    const unread = [...units].flatMap(([name, { isUnread }]) => (isUnread ? [name] : []))
    return {
      ...snapshot,
      ...(unread.length > 0 &&
        (kindOfSource(source) === 'file'
          ? { unreadable: [...(snapshot.unreadable ?? []), ...unread] }
          : { ready: false, isAnswer: false })),
      pods: inOrder([...snapshot.pods.filter(kept), ...active.filter((each) => isPodDocument(each))]),
      objects: inOrder([
        ...snapshot.objects.filter(kept),
        ...active.filter((each) => isObjectDocument(each)),
      ]),
    }
  }

  /** What units would go back to, whose images have to stay. */
  fallbacks(): readonly { readonly pods: readonly PodDocument[] }[] {
    return [...this.#all()].flatMap((unit) => {
      const fallback = fallbackOf(unit.record)
      const documents = fallback && unit.contents.get(fallback.hash)
      return documents === undefined ? [] : [{ pods: this.#podsOf(documents) }]
    })
  }

  /** The images that ran in what units would go back to, by their IDs: their names may mean others by now. */
  imagesToGoBackTo(): readonly ImageUse[] {
    return [...this.#all()].flatMap(({ record }) =>
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
    for (const unit of this.#all()) this.#wake(unit)
  }

  /** The verdict of a probe on this pod changed. */
  notePod(ref: PodRef): void {
    this.#notePod(podKey(ref))
  }

  /** All units, in the order of the sources and of their names; then those that were known before, and are not given yet. */
  units(): readonly ShownUnit[] {
    const given = [...this.#all()].map((unit) => ({
      record: unit.record,
      judged: unit.judged?.map(({ key }) => key) ?? [],
      message: explainRecord(unit.record),
    }))
    const known = [...this.#known.values()].flatMap((record) =>
      record.goneAtMs === undefined
        ? [{ record, judged: [], message: explainRecord(record) ?? notGivenYet }]
        : [],
    )
    return [...given, ...known]
  }

  /** Units of which something else counts than what is offered, and why. */
  problems(): readonly Problem[] {
    return [...this.#all()].flatMap((unit) => problemOf(unit.record, this.#locationOf(unit)) ?? [])
  }

  /** The pod with a condition where another version of it is offered. */
  present(object: PodObject): PodObject {
    const unit = this.#heldBack.get(podKey(object.metadata))
    const source = object.metadata.annotations?.['podd.dev/source']
    if (unit === undefined || unit.record.source !== source) return object
    const { pin } = unit.record
    const condition = {
      type: conditionType,
      status: 'False' as const,
      reason:
        pin === undefined ? 'UpdateFailed' : pin.why === 'requested' ? 'RollbackRequested' : 'RolledBack',
      message: describeRecord(unit.record) ?? '',
      ...(pin === undefined ? {} : { lastTransitionTime: formatTime(pin.atMs) }),
    }
    const conditions = [...object.status.conditions, condition]
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
    const unit = this.#sources.get(source)?.units.get(name)
    if (unit === undefined && this.#known.has(unitKey({ source, unit: name })))
      throw new PoddError('UPDATE_REFUSED', `${name}: ${notGivenYet}`, {
        hint: '`podd get sources` says why; try again once it is read.',
      })
    if (unit === undefined) throw new PoddError('UPDATE_REFUSED', `there is no unit ${name}`)
    const { changes, record } = unit
    const next = change(record)
    if (next === record) return next.active
    const documents = await this.#contentOf(unit, next, next.active)
    const isCurrent = this.#sources.get(source)?.units.get(name) === unit && unit.changes === changes
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
    await this.#saveOrRetry(unit, next)
    this.#env.logger.warn({ path: name, revision: next.active }, 'another revision counts on request')
    this.#tellChange(unit)
    return unit.record.active
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
      pods: this.#podsOf(documents).length,
      sourceRevision: snapshot.revision,
      digest: snapshot.digest,
    }
    if (unit !== undefined) {
      const content = isCopy ? matchCopy(unit.record, whole) : whole
      const wasCopy = unit.isCopy && !isCopy
      const before = wasCopy ? completeCopy(unit.record, whole) : unit.record
      const next = offerContent(before, content, nowMs)
      unit.offered = documents
      unit.isCopy = isCopy
      if (wasCopy) {
        for (const hash of unit.copies) unit.contents.delete(hash)
        unit.copies.clear()
      }
      keepContent(unit, content.hash, documents, content !== whole)
      if (next !== unit.record) {
        const isOther = next.active !== unit.record.active
        unit.isUnsaved = next.base !== undefined || unit.isKept
        if (isOther) this.#setActive(unit, next, documents)
        else this.#setRecord(unit, next)
        this.#saveSoon()
        if (isOther) return await this.#loadBase(unit)
      }
      if (wasCopy && unit.record.active !== unit.record.offered) await this.#loadActive(unit, firstRetryMs)
      return
    }
    const found = this.#known.get(unitKey({ source, unit: name }))
    this.#known.delete(unitKey({ source, unit: name }))
    const taken = found && takeUp(found, isCopy ? matchCopy(found, whole) : whole, nowMs)
    const earlier = taken ?? (await this.#takeRenamed({ snapshot, units }, name, whole, given))
    const content = isCopy && earlier !== undefined ? matchCopy(earlier, whole) : whole
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
    keepContent(fresh, content.hash, documents, content !== whole)
    units.set(name, fresh)
    await this.#adopt(fresh, record === earlier)
    if (fresh.isUnsaved) this.#saveSoon()
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
    for (const before of [...kept, ...this.#known.values()]) {
      if (!isGone(before) || revisionOf(before, before.offered)?.hash !== content.hash) continue
      const record = takeUp(before, content, nowMs)
      if (record === undefined) continue
      const renamed = { ...record, unit: name }
      try {
        await this.#turn.run(() => this.#store.move(before, renamed))
      } catch (error) {
        this.#env.logger.warn(
          { path: name, reason: errorMessage(error) },
          'cannot keep the revisions of a unit that was renamed: it begins anew',
        )
        return undefined
      }
      this.#known.delete(unitKey(before))
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
      const documents = await this.#contentOf(unit, record, fallback.number)
      if (unit.changes !== changes) return
      if (documents !== undefined) {
        const next = noteFailed(record, found.failure, { why: found.why, mayRollBack: true })
        this.#setRecord(unit, next)
        await this.#saveOrRetry(unit, next)
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
    if (!isJudged(record) || !isToGoBack(record)) return undefined
    if (this.#distrust !== undefined) return { why: 'crashed', failure: this.#poddCrashed() }
    const { failure } = revisionOf(record, record.active) ?? {}
    if (failure?.isHeld === true) return undefined
    const isAllowed =
      this.#options.updateRollback &&
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
    for (const [key, record] of this.#known) {
      if (record.source !== source || !isJudged(record) || !isToGoBack(record)) continue
      const next = noteFailed(record, this.#poddCrashed(), { why: 'crashed', mayRollBack: true })
      this.#known.set(key, next)
      await this.#turn
        .run(() => this.#store.save(next, new Map()))
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
      const documents = await this.#readContent(unit, record, record.active)
      if (unit.changes !== changes) return
      unit.isUnread = false
      if (documents === undefined) {
        logger.error(
          { path: record.unit },
          'the content of the active revision is lost: what is offered counts',
        )
        this.#setRecord(unit, resumeUnit(record))
        unit.isUnsaved = true
        this.#saveSoon()
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
        : await this.#contentOf(unit, record, record.base)
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
  async #selectJudged(unit: Unit, before: readonly SourceDocument[] | undefined): Promise<readonly Judged[]> {
    const earlier = before && this.#withPods(before)
    const active = this.#withPods(activeOf(unit))
    const isJudgedPod = judgesPods(earlier, active)
    const known = new Map(
      earlier?.flatMap((document) =>
        isPodDocument(document) ? [[documentKey(document), document] as const] : [],
      ),
    )
    const judged = await mapInTurns(this.#env.clock, active, (document) =>
      isPodDocument(document) && isJudgedPod(document)
        ? this.#toJudged(unit, document, known.get(documentKey(document)))
        : undefined,
    )
    return judged.filter((each) => each !== undefined)
  }

  #toJudged(unit: Unit, document: PodDocument, earlier: PodDocument | undefined): Judged {
    const named = this.#named(document)
    const before = earlier && this.#named(earlier).manifest
    const key = podKey(named.pod.metadata)
    const { restartPolicy } = document.pod.spec
    const old = unit.isFresh ? this.#pods.holder(key) : undefined
    const isOnlyRestarted =
      sameData(before, named.manifest) && document.pod.metadata.annotations[restartAnnotation] === 'true'
    return {
      document: named,
      before,
      key,
      uidBefore: unit.isFresh ? (old?.ref.uid ?? '') : undefined,
      isTask: restartPolicy !== 'Always' && old?.state.hasEnded !== false,
      restarts: isOnlyRestarted ? 1 : 0,
      changed: changedContainers(document, earlier),
    }
  }

  #judge(unit: Unit, judged: readonly Judged[] | undefined): void {
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
    if (!snapshot.ready || snapshot.isAnswer !== true) return
    const isGone = (name: string): boolean => !given.has(name) && snapshot.unreadable?.includes(name) !== true
    for (const [name, unit] of units) {
      if (!isGone(name)) continue
      this.#forget(units, unit)
      if (unit.isKept) this.#noteGone(unit.record, unit)
    }
    for (const record of this.#known.values())
      if (record.source === snapshot.source && isGone(record.unit)) this.#noteGone(record)
  }

  /** Its source doesn't give it any more: what failed of it is remembered for a while. */
  #noteGone(record: UnitRecord, unit?: Unit): void {
    const key = unitKey(record)
    const gone = noteGone(record, this.#env.clock.wallMs())
    if (gone === undefined) {
      this.#known.delete(key)
      void this.#remove(record)
      return
    }
    this.#known.set(key, gone)
    if (record.goneAtMs !== undefined) return
    const { logger } = this.#env
    void this.#turn
      .run(() => this.#store.save(gone, unit === undefined ? new Map() : wholeContents(unit)))
      .catch((error: unknown) =>
        logger.warn(
          { path: record.unit, reason: errorMessage(error) },
          'cannot record that a unit is gone: what failed of it may be tried again after a restart of podd',
        ),
      )
  }

  /** As its pod is called here. */
  #named(document: PodDocument): PodDocument {
    const { podNameSuffix } = this.#pods
    return podNameSuffix === '' ? document : renamePod(document, podNameSuffix)
  }

  /** The pods among these, and those that are made from others. */
  #podsOf(documents: readonly SourceDocument[]): readonly PodDocument[] {
    return documents.flatMap((each) => (isPodDocument(each) ? [each] : this.#targets.podsOf(each)))
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
      const owner = isPodDocument(document) ? document.owner : undefined
      const hash =
        this.#hashes.get(document) ?? digestText(canonicalJson({ manifest: document.manifest, owner }))
      this.#hashes.set(document, hash)
      hashes.push(hash)
      if (!holdsSecrets(document.manifest)) others.push(hash)
    }
    if (pace.isOver) await pace.next()
    // A server may give its documents in any order.
    const digest = (list: readonly string[]): string => digestText(list.toSorted().join('\n'))
    return {
      hash: digest(hashes),
      ...(others.length < hashes.length && { hashWithoutSecrets: digest(others) }),
    }
  }

  /** The documents of a revision; undefined where they are not kept whole, or can't be read now. */
  #contentOf(unit: Unit, record: UnitRecord, number: number): Promise<readonly SourceDocument[] | undefined> {
    return this.#readContent(unit, record, number).catch((error: unknown) => {
      this.#env.logger.error({ path: record.unit, err: error }, 'cannot read a revision')
      return undefined
    })
  }

  /** From memory or from the disk; undefined where they are not kept whole. Throws the system's error. */
  async #readContent(
    unit: Unit,
    record: UnitRecord,
    number: number,
  ): Promise<readonly SourceDocument[] | undefined> {
    const hash = revisionOf(record, number)?.hash ?? ''
    const known = unit.contents.get(hash)
    if (known !== undefined) return known
    const kept = await this.#store.content(record, hash)
    if (kept === undefined) return undefined
    // Its own were kept off the disk.
    const secrets = kept.lacksSecrets ? unit.offered.filter(({ manifest }) => holdsSecrets(manifest)) : []
    // A file may have been renamed since.
    const path = kindOfSource(record.source) === 'file' ? record.unit : undefined
    const documents = [...kept.documents, ...secrets].map((document) => placedAt(document, path))
    keepContent(unit, hash, documents, kept.lacksSecrets)
    return documents
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
      minReadyMs: this.#options.updateMinReadyMs,
      crashes: this.#options.updateCrashes,
      progressDeadlineMs: this.#options.updateProgressDeadlineMs,
    }
    const pods: JudgedPod[] = []
    for (const each of judged) {
      if (pace.isOver) {
        await pace.next()
        if (unit.judged !== judged || unit.isActing || this.#hasStopped) return
      }
      const sight = this.#see(unit, each)
      const track = trackPod(unit.tracks.get(each.key), sight, gate, nowMs)
      if (track === undefined) unit.tracks.delete(each.key)
      else unit.tracks.set(each.key, track)
      pods.push({ pod: each.key, sight, track })
    }
    const verdict = judgeUnit(pods, gate, nowMs)
    if (verdict.kind === 'healthy') {
      void this.#pass(unit)
      return
    }
    if (verdict.wakeAtMs !== undefined)
      unit.timer = clock.startTimer(verdict.wakeAtMs - nowMs, () => this.#wake(unit))
    if (verdict.kind === 'progressing') return
    const active = revisionOf(unit.record, unit.record.active)
    const isKnown = active?.verdict === 'failed'
    if (verdict.kind === 'held' && !this.#hasNothingElse(unit, verdict)) {
      const mayCount = verdict.rest === 'may-count'
      const isOver = isKnown && (active.failure?.isHeld !== true || !mayCount)
      if (isOver || unit.record.base === unit.record.active) return
      return void this.#hold(unit, verdict.failures, mayCount)
    }
    if (!isKnown || active.failure?.isHeld === true) return void this.#fail(unit, verdict.failures)
    if (!isToGoBack(unit.record) || !this.#isAllowed(unit, verdict.failures)) return
    if (unit.retryAtMs <= nowMs) return void this.#fail(unit, verdict.failures)
    unit.timer?.cancel()
    const atMs = Math.min(unit.retryAtMs, verdict.wakeAtMs ?? Infinity)
    unit.timer = clock.startTimer(atMs - nowMs, () => this.#wake(unit))
  }

  #see(unit: Unit, { document, before, key, uidBefore, restarts, changed }: Judged): PodSight {
    const { statuses, prober, knowledge } = this.#env
    const worker = this.#pods.holder(key)
    const { annotations } = document.pod.metadata
    const progressDeadlineMs = readDeadline(annotations[deadlineAnnotation]) ?? document.progress?.deadlineMs
    const held = (by: HeldBy, message: string): PodSight => ({
      kind: 'held',
      by,
      message,
      progressDeadlineMs,
    })
    if (knowledge.runtimeProblem !== undefined || this.#pods.awaitsTurn(unit.record.source, document))
      return waiting
    if (worker === undefined) return held('host', 'there is no pod of this name yet')
    const { state, ref } = worker
    const { record, admission, stage } = state
    const isMeant = sameData(record.manifest, document.manifest)
    const isBase = !isMeant && sameData(record.manifest, before)
    if (record.ending !== undefined || stage === 'adopted') return waiting
    if (record.source !== unit.record.source || record.path !== document.place.path)
      return held(
        'host',
        `the pod of this name is given by ${record.path || record.source}, which is followed`,
      )
    const former = (): PodSight =>
      held('former', this.#pods.updateProblem(key) ?? 'its former version runs until it can be replaced')
    if (isBase) return former()
    if (record.failed?.until !== undefined) return waiting
    if (admission?.kind === 'rejected' || (admission?.kind === 'blocked' && !isPassing(admission.reason)))
      return held('host', admission.message)
    if (stage === 'waiting' || admission?.kind !== 'admitted') return waiting
    const status = statuses.find(ref.uid)?.status
    if (status === undefined || status.observedGeneration !== podGeneration(record)) return waiting
    const { containerStatuses = [] } = status
    const { containers, initContainers } = state.pod.spec
    const isApplied = containerStatuses.every(({ name, image, containerID }) => {
      const spec = containers.find((container) => container.name === name)
      return spec === undefined || containerID === undefined || image === spec.image
    })
    if (isMeant && !isApplied) return former()
    const sidecars = initContainers.filter((container) => isRestartableInit(container))
    const verdicts = prober.verdicts(ref.uid)
    const unstarted = state.observed.containers.find(({ id }) => verdicts[id]?.startup === 'failure')
    const isReady =
      status.conditions.some(({ type, status: is }) => type === 'Ready' && is === 'True') &&
      !(isMeant && hasOutdatedContainers(this.#env, state))
    const always = state.pod.spec.restartPolicy === 'Always'
    const isNew = uidBefore !== undefined && uidBefore !== ref.uid
    return {
      kind: 'seen',
      uid: ref.uid,
      state:
        status.phase === 'Succeeded'
          ? 'completed'
          : status.phase === 'Failed'
            ? 'failed'
            : isReady
              ? 'ready'
              : 'starting',
      crashes: countCrashes(status, {
        isCounted: (name) => changed.has(name),
        restartsAlways: (name, isInit) => (isInit ? sidecars.some((each) => each.name === name) : always),
      }),
      isNew,
      isBetween: !isMeant,
      expectedRestarts: isNew ? 0 : restarts,
      failedStartup: unstarted?.name,
      progressDeadlineMs,
      isPulling: this.#env.images.isPulling(ref.uid),
      minReadyMs: document.progress?.minReadyMs,
      message: explainUnready(status),
    }
  }

  /** The active revision is healthy. That counts once it is recorded, also where another one has come meanwhile. */
  async #pass(unit: Unit): Promise<void> {
    const { logger } = this.#env
    const { source, unit: path, active } = unit.record
    unit.isActing = true
    try {
      const images = this.#imagesOf(unit)
      await this.#saveOrRetry(unit, noteHealthy(unit.record, active, images))
      const isGone = this.#sources.get(source)?.units.get(path) !== unit
      if (isGone || this.#hasStopped || revisionOf(unit.record, active) === undefined) return
      const isActive = unit.record.active === active
      this.#setRecord(unit, noteHealthy(unit.record, active, images))
      logger.debug({ path, revision: active }, 'the revision is healthy')
      this.#showHeldBack()
      if (isActive) return this.#judge(unit, undefined)
      unit.isUnsaved = true
      this.#saveSoon()
      await this.#loadBase(unit)
    } catch (error) {
      logger.error({ path, err: error }, 'cannot note that a revision is healthy')
    } finally {
      unit.isActing = false
      this.#wake(unit)
    }
  }

  /** The images that the pods of the active revision run. */
  #imagesOf(unit: Unit): readonly RanImage[] {
    return this.#podsOf(activeOf(unit)).flatMap((document) => {
      const pod = podKey(this.#named(document).pod.metadata)
      const worker = this.#pods.holder(pod)
      const status = worker && this.#env.statuses.find(worker.ref.uid)?.status
      const { initContainerStatuses = [], containerStatuses = [] } = status ?? {}
      return allContainers(document.pod.spec).flatMap(({ name, image }) => {
        const id = [...initContainerStatuses, ...containerStatuses].find(
          (each) => each.name === name && each.image === image,
        )?.imageID
        return id === undefined || id === '' ? [] : [{ pod, container: name, image, id }]
      })
    })
  }

  /** The active revision failed: what failed is recorded before anything else counts. */
  async #fail(unit: Unit, failures: readonly PodFailure[]): Promise<void> {
    const { clock, logger } = this.#env
    const { changes, record } = unit
    const isCurrent = (): boolean => unit.changes === changes && !this.#hasStopped
    unit.isActing = true
    try {
      const failure = await this.#describe(failures)
      if (failure === undefined) return
      const fallback = fallbackOf(record)
      const documents = fallback && (await this.#contentOf(unit, record, fallback.number))
      if (!isCurrent()) return
      const isAllowed = this.#isAllowed(unit, failures)
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
      if (record.base !== undefined) await this.#saveOrRetry(unit, next)
      if (!isCurrent()) return
      this.#tellLate(failures)
      this.#setRecord(unit, next)
      if (next.active === record.active) {
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

  /** No pod of the active revision may run here: what it goes back to is worth more. */
  #hasNothingElse(unit: Unit, { failures, rest }: Extract<UnitVerdict, { kind: 'held' }>): boolean {
    if (rest !== 'none' || !isToGoBack(unit.record) || !this.#isAllowed(unit, failures)) return false
    const pods = this.#podsOf(activeOf(unit))
    return pods.length === unit.judged?.length
  }

  /** Pods of the active revision have not come into effect by their deadline. That is recorded, and nothing is undone. */
  async #hold(unit: Unit, failures: readonly PodFailure[], mayCount: boolean): Promise<void> {
    const { logger } = this.#env
    const { changes, record } = unit
    unit.isActing = true
    try {
      const isKnown = revisionOf(record, record.active)?.verdict === 'failed'
      const failure = await this.#describe(failures)
      if (failure === undefined || unit.changes !== changes || this.#hasStopped) return
      const next = noteHeld(record, failure, mayCount, this.#imagesOf(unit))
      if (mayCount || record.base !== undefined) await this.#saveOrRetry(unit, next)
      if (unit.changes !== changes || this.#hasStopped) return
      this.#setRecord(unit, next)
      this.#showHeldBack()
      if (isKnown) return
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

  /** With how the containers are, and their last log lines. */
  async #describe(failures: readonly PodFailure[]): Promise<RevisionFailure | undefined> {
    const [first] = failures
    if (first === undefined) return undefined
    const containers = await gatherEvidence(this.#env, failures, this.#pods.holder)
    const more = failures.length - 1
    return {
      reason: first.reason,
      message:
        more === 0
          ? first.message
          : `${first.message}; and ${more} more ${more === 1 ? 'pod has' : 'pods have'} failed`,
      atMs: this.#env.clock.wallMs(),
      containers,
    }
  }

  #tellLate(failures: readonly PodFailure[]): void {
    for (const { pod, reason, message } of failures) {
      const worker = this.#pods.holder(pod)
      if (reason === 'ProgressDeadlineExceeded' && worker !== undefined)
        this.#env.events.record({ pod: worker.ref, type: 'Warning', reason, message })
    }
  }

  #isAllowed(unit: Unit, failures: readonly PodFailure[]): boolean {
    if (!this.#options.updateRollback) return false
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
    for (const document of this.#podsOf(activeOf(unit))) {
      const worker = this.#pods.holder(podKey(this.#named(document).pod.metadata))
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
    const needed = [next.offered, next.active, next.base].map((number) => revisionOf(next, number)?.hash)
    for (const hash of unit.contents.keys()) if (!needed.includes(hash)) unit.contents.delete(hash)
  }

  #tellChange(unit: Unit): void {
    this.#showHeldBack()
    this.#pods.onChange(unit.record.source)
  }

  /** Which pods have a condition follows from the records. */
  #showHeldBack(): void {
    const before = this.#heldBack
    const after = new Map<PodKey, Unit>()
    for (const unit of this.#all()) {
      if (describeRecord(unit.record) === undefined) continue
      for (const document of this.#podsOf(activeOf(unit))) {
        after.set(podKey(this.#named(document).pod.metadata), unit)
      }
    }
    if (before.size === 0 && after.size === 0) return
    this.#heldBack = after
    for (const key of new Set([...before.keys(), ...after.keys()])) {
      const worker = this.#pods.holder(key)
      if (worker !== undefined) this.#env.statuses.refresh(worker.ref.uid)
    }
  }

  /** Saves what is not on the disk, in the background. */
  #saveSoon(): void {
    void this.#turn.run(async () => {
      for (const unit of this.#all()) {
        if (!unit.isUnsaved || this.#hasStopped) continue
        unit.isUnsaved = false
        await this.#write(unit, unit.record).catch((error: unknown) => this.#saveLater(unit, error))
      }
    })
  }

  /** Throws the system's error. */
  #save(unit: Unit, record: UnitRecord): Promise<void> {
    return this.#turn.run(() => this.#write(unit, record))
  }

  /** Resolves when it is saved, or can't be: then it is tried again. */
  #saveOrRetry(unit: Unit, record: UnitRecord): Promise<void> {
    return this.#save(unit, record).catch((error: unknown) => this.#saveLater(unit, error))
  }

  /** Writes nothing of a unit that has gone meanwhile. Throws the system's error. */
  async #write(unit: Unit, record: UnitRecord): Promise<void> {
    if (this.#sources.get(record.source)?.units.get(record.unit) !== unit) return
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
    if (this.#retry !== undefined || this.#hasStopped) return
    this.#retry = clock.startTimer(this.#retryMs, () => {
      this.#retry = undefined
      this.#saveSoon()
    })
    this.#retryMs = Math.min(this.#retryMs * 2, longestRetryMs)
  }

  async #remove(record: UnitRecord): Promise<void> {
    const { logger } = this.#env
    await this.#turn
      .run(async () => {
        if (this.#sources.get(record.source)?.units.has(record.unit) !== true)
          await this.#store.remove(record)
      })
      .catch((error: unknown) =>
        logger.warn(
          { path: record.unit, reason: errorMessage(error) },
          'cannot remove the revisions of a unit',
        ),
      )
  }

  *#all(): Generator<Unit, void> {
    for (const { units } of this.#sources.values()) yield* units.values()
  }

  #locationOf({ record }: Unit): string {
    const location = this.#sources.get(record.source)?.snapshot.location
    return kindOfSource(record.source) === 'file' ? record.unit : (location ?? record.unit)
  }
}

const waiting: PodSight = { kind: 'waiting' }

/** Also while the last set that worked runs in place of its source. */
const notGivenYet = 'its source has not been followed since podd started'

/** Why a pod isn't admitted that says nothing about its manifest, and passes. */
function isPassing(reason: string): boolean {
  return ['NodeUnderPressure', 'NodeShutdown', 'RuntimeNotReady'].includes(reason)
}

function unitKey({ source, unit }: Pick<UnitRecord, 'source' | 'unit'>): string {
  return `${source}\n${unit}`
}

/** The unit that a document belongs to: its file, or the whole of a URL. */
function unitOf({ source }: Pick<SourceSnapshot, 'source'>, { place }: SourceDocument): string {
  return kindOfSource(source) === 'file' ? place.path : source
}

/** A URL is a unit also where it gives nothing, once it has answered. */
function unitsOf(snapshot: SourceSnapshot): ReadonlyMap<string, readonly SourceDocument[]> {
  const units = new Map<string, SourceDocument[]>()
  if (kindOfSource(snapshot.source) !== 'file' && snapshot.ready) units.set(snapshot.source, [])
  for (const document of [...snapshot.pods, ...snapshot.objects]) {
    const name = unitOf(snapshot, document)
    const documents = units.get(name)
    if (documents === undefined) units.set(name, [document])
    else documents.push(document)
  }
  return units
}

/** By path, as their source orders them; those of one path stay in their order. */
function inOrder<Document extends SourceDocument>(documents: readonly Document[]): readonly Document[] {
  return documents.toSorted(({ place: { path: a } }, { place: { path: b } }) =>
    a === b ? 0 : a < b ? -1 : 1,
  )
}

function keepContent(
  { contents, copies }: Unit,
  hash: string,
  documents: readonly SourceDocument[],
  isCopy: boolean,
): void {
  contents.set(hash, documents)
  if (isCopy) copies.add(hash)
  else copies.delete(hash)
}

/** Those that were not kept without Secrets. */
function wholeContents({ contents, copies }: Unit): ReadonlyMap<string, readonly SourceDocument[]> {
  return new Map([...contents].filter(([hash]) => !copies.has(hash)))
}

function placedAt(document: SourceDocument, path: string | undefined): SourceDocument {
  const { place } = document
  return path === undefined || place.path === path ? document : { ...document, place: { ...place, path } }
}

function activeOf({ record, contents, offered }: Unit): readonly SourceDocument[] {
  if (record.active === record.offered) return offered
  return contents.get(revisionOf(record, record.active)?.hash ?? '') ?? offered
}

function isSameList(before: readonly SourceDocument[], after: readonly SourceDocument[]): boolean {
  return before.length === after.length && before.every((document, at) => document === after[at])
}

/** Undefined for one that can't be read: the setting counts. */
function readDeadline(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  try {
    const deadlineMs = parseDuration(text)
    return deadlineMs > 0 ? deadlineMs : undefined
  } catch {
    // It is no duration.
    return undefined
  }
}
