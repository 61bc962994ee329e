import { mapInTurns, PacedWork, TurnPace } from '../../base/clock.ts'
import { sameData } from '../../base/json.ts'
import type { PoddConfig } from '../../config/options.ts'
import { renamePod } from '../../decide/sources/merge-snapshots.ts'
import { judgesPods, judgeUnit, mayRollBack, trackPod } from '../../decide/updates/health-gate.ts'
import type { JudgedPod, PodFailure } from '../../decide/updates/health-gate.ts'
import { describeRecord } from '../../decide/updates/describe-unit.ts'
import { askForRollback } from '../../decide/updates/unit-content.ts'
import {
  decideStep,
  fallbackOf,
  isJudged,
  isToGoBack,
  noteFailed,
  noteHealthy,
  noteHeld,
  noteMoreFailed,
  revisionOf,
} from '../../decide/updates/unit-revisions.ts'
import type { RevisionFailure, UnitRecord } from '../../decide/updates/unit-revisions.ts'
import { isOnDelete, WorkloadTargets } from '../../decide/workloads/replica-pods.ts'
import { documentKey, isPodDocument } from '../../pod/objects/document.ts'
import type { ObjectDocument, PodDocument, SourceDocument } from '../../pod/objects/document.ts'
import { kindOfSource, podKey } from '../../pod/values/ids.ts'
import type { PodKey, SourceName } from '../../pod/values/ids.ts'
import type { PodEnv } from '../pod/env.ts'
import type { DesiredPods } from './desired-pods.ts'
import { describeChanged, describeFailures, failedWorkloads, listRanImages, seePod } from './judged-pods.ts'
import type { ChangedPod } from './judged-pods.ts'
import { activeOf, firstRetryMs, longestRetryMs, setRecord } from './units.ts'
import type { Unit, Units } from './units.ts'
import type { Workloads } from './workloads.ts'

/** What updates are judged by. */
export type GateSettings = Pick<
  PoddConfig,
  | 'updateMinReadyMs'
  | 'updateCrashes'
  | 'updateProgressDeadlineMs'
  | 'updateRollback'
  | 'podNameSuffix'
  | 'sources'
>

/**
 * Judges the active revisions of units by how their pods go, and carries out what follows: a healthy one is the one to go back
 * to, a failed one is gone back from. Each verdict is recorded before anything is done about it.
 */
export class UnitVerdicts {
  readonly #env: PodEnv
  readonly #settings: GateSettings
  readonly #desired: DesiredPods
  readonly #workloads: Workloads
  readonly #units: Units
  readonly #onChange: (source: SourceName) => void
  /** The units that judge a pod, by its name. */
  readonly #judging = new Map<PodKey, Set<Unit>>()
  /** The units whose active revision is not the offered one, by the pods that they have. */
  heldBack: ReadonlyMap<PodKey, Unit> = new Map()
  /** What workloads are to have by their newest templates: that is what is judged. */
  readonly #targets = new WorkloadTargets()
  readonly #due = new Set<Unit>()
  /** At the due units; each looks at all pods of theirs. */
  readonly #looks: PacedWork

  /** @param onChange what counts of this source is something else now */
  constructor(
    env: PodEnv,
    settings: GateSettings,
    desired: DesiredPods,
    workloads: Workloads,
    units: Units,
    onChange: (source: SourceName) => void,
  ) {
    this.#env = env
    this.#settings = settings
    this.#desired = desired
    this.#workloads = workloads
    this.#units = units
    this.#onChange = onChange
    this.#looks = new PacedWork(env.clock, () => this.#lookAtDue())
  }

  stop(): void {
    this.#looks.stop()
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
  podsOf(documents: readonly SourceDocument[]): readonly PodDocument[] {
    return documents.flatMap((each) => (isPodDocument(each) ? [each] : this.#targetsOf(each)))
  }

  #targetsOf(document: ObjectDocument): readonly PodDocument[] {
    try {
      return this.#targets.podsOf(document)
    } catch {
      // They can't be made: `Workloads` reports that, and what else the source gives goes on.
      return []
    }
  }

  /** Those that count of a unit, by the names that they have here. */
  podsHere(unit: Unit): readonly PodDocument[] {
    return this.podsOf(activeOf(unit)).map((document) => this.#named(document))
  }

  /** Without the pods that somebody has to delete first: that may be after weeks, or never. */
  #withPods(documents: readonly SourceDocument[]): readonly SourceDocument[] {
    const made = documents.flatMap((each) =>
      isPodDocument(each) || isOnDelete(each.object) ? [] : this.#targetsOf(each),
    )
    return made.length === 0 ? documents : [...documents, ...made]
  }

  /** Whether what fails of it is undone. */
  isRolledBack({ record, offered }: Pick<Unit, 'record' | 'offered'>): boolean {
    return kindOfSource(record.source) !== 'api' || askForRollback(offered)
  }

  /** Whether people are told how it does, beside its pods. */
  isShown(unit: Unit): boolean {
    return unit.record.pin !== undefined || this.isRolledBack(unit)
  }

  /** Another revision is active, whose content is in memory or is loaded next. */
  setActive(unit: Unit, next: UnitRecord): void {
    unit.isFresh = true
    unit.retryAtMs = 0
    unit.retryMs = firstRetryMs
    this.end(unit)
    setRecord(unit, next)
  }

  /** Begins to judge the active revision, where it is to be, against the one to go back to. */
  async begin(unit: Unit): Promise<void> {
    const { changes, record } = unit
    // It begins once that is read.
    if (unit.isUnread) return
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
   * A workload is to have other pods by the template that is active: it was scaled, say. What is known of those that stay
   * counts on.
   */
  async renew(unit: Unit): Promise<void> {
    const known = new Map(unit.judged?.map((judged) => [judged.key, judged]))
    const tracks = new Map(unit.tracks)
    unit.changes += 1
    const { changes } = unit
    await this.begin(unit)
    if (unit.changes !== changes || unit.judged === undefined) return
    const judged = unit.judged.map((each) => {
      const before = known.get(each.key)
      if (before === undefined || !sameData(before.document.manifest, each.document.manifest)) return each
      const track = tracks.get(each.key)
      if (track !== undefined) unit.tracks.set(each.key, track)
      return { ...each, uidBefore: before.uidBefore, isTask: before.isTask }
    })
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

  /** What was judged of it is another revision's, or it is judged no more. */
  end(unit: Unit): void {
    this.#judge(unit, undefined)
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
    this.wake(unit)
  }

  notePod(key: PodKey): void {
    for (const unit of this.#judging.get(key) ?? []) this.wake(unit)
  }

  wake(unit: Unit): void {
    if (unit.judged === undefined || this.#units.hasStopped) return
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
    if (judged === undefined || unit.isActing || this.#units.hasStopped) return
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
        if (unit.judged !== judged || unit.isActing || this.#units.hasStopped) return
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
      unit.timer = clock.startTimer(verdict.wakeAtMs - nowMs, () => this.wake(unit))
    if (verdict.kind === 'progressing') return
    // What fails while the host goes down says nothing of a revision. It is judged again if that is called off.
    const { shutdown } = this.#env
    if ((await shutdown.look()) ?? shutdown.isStopping) return
    if (unit.judged !== judged || unit.isActing || this.#units.hasStopped) return
    const step = decideStep(unit.record, verdict, {
      mayGoBack: this.#mayGoBack(unit, verdict.failures),
      isWhole: this.podsOf(activeOf(unit)).length === judged.length,
    })
    if (step === 'wait') return this.#noteMore(unit, verdict.failures)
    if (step === 'hold')
      return void this.#hold(unit, verdict.failures, verdict.kind === 'held' && verdict.rest === 'may-count')
    if (step === 'fail' || unit.retryAtMs <= nowMs) return void this.#fail(unit, verdict.failures)
    unit.timer?.cancel()
    const atMs = Math.min(unit.retryAtMs, verdict.wakeAtMs ?? Infinity)
    unit.timer = clock.startTimer(atMs - nowMs, () => this.wake(unit))
  }

  /** The active revision is healthy. That counts once it is recorded, also where another one has come meanwhile. */
  async #pass(unit: Unit): Promise<void> {
    const { logger } = this.#env
    const { unit: path, active } = unit.record
    unit.isActing = true
    try {
      const images = listRanImages(this.#env, this.#desired, this.podsHere(unit))
      // A pod that was written over the API once, and asks for nothing, costs no write.
      if (this.isRolledBack(unit) || unit.record.latest > 1)
        await this.#units.saveOrRetry(unit, noteHealthy(unit.record, active, images))
      const isGone = this.#units.find(unit.record) !== unit
      if (isGone || this.#units.hasStopped || revisionOf(unit.record, active) === undefined) return
      const isActive = unit.record.active === active
      setRecord(unit, noteHealthy(unit.record, active, images))
      logger.debug({ path, revision: active }, 'the revision is healthy')
      this.showHeldBack()
      this.#workloads.noteVerdict(unit.record.source)
      if (isActive) return this.end(unit)
      unit.isUnsaved = true
      this.#units.saveSoon()
      await this.begin(unit)
    } catch (error) {
      logger.error({ path, err: error }, 'cannot note that a revision is healthy')
    } finally {
      unit.isActing = false
      this.wake(unit)
    }
  }

  /** The active revision failed: what failed is recorded before anything else counts. */
  async #fail(unit: Unit, failures: readonly PodFailure[]): Promise<void> {
    const { clock, logger } = this.#env
    const { changes, record } = unit
    const isCurrent = (): boolean => unit.changes === changes && !this.#units.hasStopped
    unit.isActing = true
    try {
      const failure = await describeFailures(this.#env, this.#desired, failures, unit.judged)
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
      if (this.isShown(unit)) this.#tellLate(failures)
      setRecord(unit, next)
      if (next.active === record.active) {
        if (this.isShown(unit))
          logger.warn(
            { path: record.unit, revision: record.active, reason: failure.message },
            'a revision failed, and stays',
          )
        this.showHeldBack()
        this.#workloads.noteVerdict(record.source)
        return
      }
      this.end(unit)
      this.tellRollBack(unit, failure)
      this.tellChange(unit)
    } catch (error) {
      logger.error({ path: record.unit, err: error }, 'cannot carry out what follows from a failed revision')
    } finally {
      unit.isActing = false
      this.wake(unit)
    }
  }

  /** Pods of the active revision have not come into effect by their deadline. That is recorded, and nothing is undone. */
  async #hold(unit: Unit, failures: readonly PodFailure[], mayCount: boolean): Promise<void> {
    const { logger } = this.#env
    const { changes, record } = unit
    unit.isActing = true
    try {
      const isKnown = revisionOf(record, record.active)?.verdict === 'failed'
      const failure = await describeFailures(this.#env, this.#desired, failures, unit.judged)
      if (failure === undefined || unit.changes !== changes || this.#units.hasStopped) return
      const next = noteHeld(
        record,
        failure,
        mayCount,
        listRanImages(this.#env, this.#desired, this.podsHere(unit)),
      )
      const isWorth = mayCount ? this.isRolledBack(unit) : record.base !== undefined
      if (isWorth) await this.#units.saveOrRetry(unit, next)
      if (unit.changes !== changes || this.#units.hasStopped) return
      setRecord(unit, next)
      this.showHeldBack()
      this.#workloads.noteVerdict(record.source)
      if (isKnown || !this.isShown(unit)) return
      this.#tellLate(failures)
      logger.warn(
        { path: record.unit, revision: record.active, reason: failure.message },
        'a revision is not in effect as a whole, and stays',
      )
    } catch (error) {
      logger.error({ path: record.unit, err: error }, 'cannot note that a revision is not in effect')
    } finally {
      unit.isActing = false
      this.wake(unit)
    }
  }

  /** It had failed before by other pods, and stays. */
  #noteMore(unit: Unit, failures: readonly PodFailure[]): void {
    const next = noteMoreFailed(unit.record, failedWorkloads(failures, unit.judged))
    if (next === unit.record) return
    setRecord(unit, next)
    if (next.base !== undefined) {
      unit.isUnsaved = true
      this.#units.saveSoon()
    }
    this.#workloads.noteVerdict(next.source)
  }

  #tellLate(failures: readonly PodFailure[]): void {
    for (const { pod, reason, message } of failures) {
      const worker = this.#desired.holder(pod)
      if (reason === 'ProgressDeadlineExceeded' && worker !== undefined)
        this.#env.events.record({ pod: worker.ref, type: 'Warning', reason, message })
    }
  }

  #mayGoBack(unit: Unit, failures: readonly PodFailure[]): boolean {
    if (!this.#settings.updateRollback || !this.isRolledBack(unit)) return false
    const all = new Map(unit.judged?.map((judged) => [judged.key, judged]))
    return failures.every(({ pod }) => {
      const judged = all.get(pod)
      return judged !== undefined && !judged.isTask && mayRollBack(judged.document)
    })
  }

  tellRollBack(unit: Unit, failure: RevisionFailure): void {
    const { events, logger } = this.#env
    const { record } = unit
    const message = `revision ${record.offered} of ${record.unit} failed, and revision ${record.active} counts again: ${failure.message}`
    logger.warn(
      { path: record.unit, revision: record.active, reason: failure.message },
      'the unit is rolled back',
    )
    events.recordNode({ type: 'Warning', reason: 'RolledBack', message })
    for (const { pod, place } of this.podsHere(unit)) {
      const worker = this.#desired.holder(podKey(pod.metadata))
      // Another file may give the pod of this name.
      if (worker?.state.record.path === place.path)
        events.record({ pod: worker.ref, type: 'Warning', reason: 'RolledBack', message })
    }
  }

  tellChange(unit: Unit): void {
    this.showHeldBack()
    this.#onChange(unit.record.source)
  }

  /** Which pods have a condition follows from the records. */
  showHeldBack(): void {
    const before = this.heldBack
    const after = new Map<PodKey, Unit>()
    for (const unit of this.#units.all()) {
      if (describeRecord(unit.record) === undefined || !this.isShown(unit)) continue
      for (const { pod } of this.podsHere(unit)) after.set(podKey(pod.metadata), unit)
    }
    if (before.size === 0 && after.size === 0) return
    this.heldBack = after
    for (const key of new Set([...before.keys(), ...after.keys()])) {
      const worker = this.#desired.holder(key)
      if (worker !== undefined) this.#env.statuses.refresh(worker.ref.uid)
    }
  }
}
