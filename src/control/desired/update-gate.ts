import type { PodObject } from '../../api/resource.ts'
import type { UnitState } from '../../api/sources.ts'
import { formatTime } from '../../base/clock.ts'
import { PoddError } from '../../base/errors.ts'
import { parseSigningKey } from '../../base/minisign.ts'
import type { ImageUse } from '../../decide/node/plan-image-garbage.ts'
import {
  describeRecord,
  explainRecord,
  problemOf,
  stateOfRecord,
} from '../../decide/updates/describe-unit.ts'
import { replaceUnits, unitOf } from '../../decide/updates/unit-content.ts'
import { fallbackOf, resumeOnRequest, revisionOf, rollBackTo } from '../../decide/updates/unit-revisions.ts'
import type { KeptRevision, UnitRecord } from '../../decide/updates/unit-revisions.ts'
import type { ObjectDocument, PodDocument, Problem, SourceSnapshot } from '../../pod/objects/document.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import { keyOfObject } from '../../pod/objects/local-object.ts'
import { upToDateCondition } from '../../pod/state/status.ts'
import { kindOfSource, podKey } from '../../pod/values/ids.ts'
import type { PodKey, PodRef, SourceName } from '../../pod/values/ids.ts'
import type { RevisionStore } from '../../store/revisions.ts'
import type { PodEnv } from '../pod/env.ts'
import type { DesiredPods } from './desired-pods.ts'
import { UnitOffers } from './unit-offers.ts'
import { UnitVerdicts } from './unit-verdicts.ts'
import type { GateSettings } from './unit-verdicts.ts'
import { activeOf, unitKey, Units } from './units.ts'
import type { Unit } from './units.ts'
import type { Workloads } from './workloads.ts'

/** A unit as the API shows it. */
export interface ShownUnit {
  readonly record: UnitRecord
  /** The pods that are being judged. */
  readonly judged: readonly PodKey[]
  readonly state: UnitState
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
  readonly #units: Units
  readonly #verdicts: UnitVerdicts
  readonly #offers: UnitOffers

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
    this.#units = new Units(env, store, (source) => trustedKeys(settings, source))
    this.#verdicts = new UnitVerdicts(env, settings, desired, workloads, this.#units, onChange)
    this.#offers = new UnitOffers(env, settings, this.#units, this.#verdicts)
  }

  /** Reads the records of an earlier podd. To be called before anything is offered. Never throws. */
  async begin(): Promise<void> {
    await this.#units.load()
    this.#env.statuses.subscribe(({ object }) => this.#verdicts.notePod(podKey(object.metadata)))
  }

  /**
   * podd has crashed again and again: what it was trying is not tried again where it is seen within this time. To be called
   * before anything is offered.
   */
  distrustNew(forMs: number): void {
    this.#offers.distrustNew(forMs)
  }

  stop(): void {
    this.#units.stop()
    this.#verdicts.stop()
    this.#offers.stop()
  }

  /** Takes what a source gives; gives what counts of it. */
  async take(snapshot: SourceSnapshot): Promise<SourceSnapshot> {
    const { source } = snapshot
    const known = this.#units.sources.get(source) ?? { snapshot, units: new Map<string, Unit>() }
    known.snapshot = snapshot
    this.#units.sources.set(source, known)
    if (snapshot.standsIn === 'crashed') {
      await this.#offers.distrustKnown(source)
      return snapshot
    }
    await this.#offers.take(known)
    this.#verdicts.showHeldBack()
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
      return documents === undefined ? [] : [{ pods: this.#verdicts.podsOf(documents) }]
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
    const record = this.#verdicts.heldBack.get(key)?.record
    if (record?.pin === undefined) return undefined
    const ran = revisionOf(record, record.active)?.images?.find(
      (each) => each.pod === key && each.container === name && each.image === image,
    )
    return { imageId: ran?.id }
  }

  /** Why this document failed in the revision in effect of the unit that gives it; undefined where it did not. */
  failureOf(source: SourceName, document: ObjectDocument): string | undefined {
    const unit = unitOf({ source }, document)
    const record = unit === undefined ? undefined : this.#units.find({ source, unit })?.record
    const revision = record && revisionOf(record, record.active)
    if (revision?.verdict !== 'failed') return undefined
    const { message, workloads } = revision.failure ?? {}
    return workloads === undefined ? message : workloads[keyOfObject(document.object)]
  }

  /** Something about pods changed of which their statuses don't tell. */
  review(): void {
    for (const unit of this.#units.all()) this.#verdicts.wake(unit)
  }

  /** The verdict of a probe on this pod changed. */
  notePod(ref: PodRef): void {
    this.#verdicts.notePod(podKey(ref))
  }

  /** All units, in the order of the sources and of their names; then those that were known before, and are not given yet. */
  units(): readonly ShownUnit[] {
    const errors = new Map(
      [...this.#units.sources].map(([source, { snapshot }]) => [source, firstErrors(snapshot)] as const),
    )
    const explain = ({ source, unit }: UnitRecord, path = unit): Divergence | undefined => {
      const snapshot = this.#units.sources.get(source)?.snapshot
      const place = kindOfSource(source) === 'http' ? snapshot?.location : path
      return explainSource(snapshot, errors.get(source)?.get(place ?? ''))
    }
    const given = [...this.#units.all()].map(({ record, judged = [], offered }) => {
      // A unit of the API is an object in a file of its own.
      const path = kindOfSource(record.source) === 'api' ? offered[0]?.place.path : record.unit
      const pods = judged.map(({ key }) => key)
      return showUnit(record, pods, explain(record, path))
    })
    const known = [...this.#units.known.values()].flatMap((record) =>
      record.goneAtMs === undefined ? [showUnit(record, [], explain(record) ?? unread)] : [],
    )
    return [...given, ...known]
  }

  /** Units of which something else counts than what is offered, and why. */
  problems(): readonly Problem[] {
    return [...this.#units.all()].flatMap((unit) =>
      this.#verdicts.isShown(unit) ? (problemOf(unit.record, this.#locationOf(unit)) ?? []) : [],
    )
  }

  /** The pod with a condition where another version of it is offered. */
  present(object: PodObject): PodObject {
    const unit = this.#verdicts.heldBack.get(podKey(object.metadata))
    if (unit === undefined || !gives(unit.record, object.metadata.annotations ?? {})) return object
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
    return this.#request(source, unitName, (record) =>
      granted(unitName, rollBackTo(record, to, this.#env.clock.wallMs())),
    )
  }

  /** Tries again what the source gives. Gives the number of the revision that counts now. Throws as `rollBack`. */
  resume(source: SourceName, unitName: string): Promise<number> {
    return this.#request(source, unitName, (record) => granted(unitName, resumeOnRequest(record)))
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
    this.#verdicts.setActive(unit, next)
    await this.#verdicts.begin(unit)
    await this.#units.saveOrRetry(unit, next)
    this.#env.logger.warn({ path: name, revision: next.active }, 'another revision counts on request')
    this.#verdicts.tellChange(unit)
    return unit.record.active
  }

  /** The revisions of a unit that are kept, oldest first, with what they consist of. */
  async revisionsOf(source: SourceName, name: string): Promise<readonly KeptRevision[]> {
    const unit = this.#units.find({ source, unit: name })
    if (unit === undefined) return []
    const { revisions, offered } = unit.record
    const contents = await this.#units.allContents(unit)
    const isApi = kindOfSource(source) === 'api'
    return revisions.flatMap(({ number, hash, atMs }) => {
      const documents = contents.get(hash)
      return documents === undefined
        ? []
        : [{ number, atMs, documents, isWritten: isApi && number === offered }]
    })
  }

  #locationOf({ record }: Unit): string {
    const location = this.#units.sources.get(record.source)?.snapshot.location
    return kindOfSource(record.source) === 'file' ? record.unit : (location ?? record.unit)
  }
}

/** Whether a pod is of this unit, and not of another that gives the same name. */
function gives({ source, unit }: UnitRecord, annotations: Readonly<Record<string, string>>): boolean {
  if (annotations['podd.dev/source'] !== source) return false
  return kindOfSource(source) !== 'file' || annotations['podd.dev/path'] === unit
}

/** Throws PoddError UPDATE_REFUSED. */
function granted(
  unit: string,
  outcome: { readonly record: UnitRecord } | { readonly refusal: string },
): UnitRecord {
  if ('refusal' in outcome) throw new PoddError('UPDATE_REFUSED', `${unit}: ${outcome.refusal}`)
  return outcome.record
}

/** Why something else counts of a unit than its source gives, where no revision of it is the reason. */
interface Divergence {
  readonly state: UnitState
  readonly message: string
}

/** Also while the last set that worked runs in place of its source. */
const notGivenYet = 'its source has not been followed since podd started'
const unread: Divergence = { state: 'Unread', message: notGivenYet }

/** The first error in each place; of a URL, the first of all. */
function firstErrors({ source, location, problems }: SourceSnapshot): ReadonlyMap<string, Problem> {
  const errors = problems.filter(({ severity }) => severity === 'error').toReversed()
  const isUrl = kindOfSource(source) === 'http'
  return new Map(errors.map((problem) => [isUrl ? location : problem.place.path, problem]))
}

/** @param error in what the source gives of the unit */
function explainSource(
  snapshot: SourceSnapshot | undefined,
  error: Problem | undefined,
): Divergence | undefined {
  if (snapshot?.standsIn === 'held')
    return {
      state: 'Held',
      message: 'its source is held: what that gives now does not count until `podd resume`',
    }
  if (snapshot?.standsIn === 'crashed')
    return {
      state: 'Held',
      message: 'podd crashed again and again after its source changed: the last set of it that worked runs',
    }
  if (error === undefined) return undefined
  const what = 'not all that its source gives now is valid, and the last good form counts'
  const { place, field, message } = error
  const line = place.line === undefined ? [] : [`line ${place.line}`]
  return {
    state: 'Invalid',
    message: [what, ...line, ...(field === undefined ? [] : [field]), message].join(': '),
  }
}

function showUnit(
  record: UnitRecord,
  judged: readonly PodKey[],
  divergence: Divergence | undefined,
): ShownUnit {
  const state = stateOfRecord(record)
  const isOwn = state !== 'Healthy' && state !== 'Progressing'
  return {
    record,
    judged,
    state: isOwn ? state : (divergence?.state ?? state),
    message: (isOwn ? undefined : divergence?.message) ?? explainRecord(record) ?? divergence?.message,
  }
}

/** The IDs of the keys that a source trusts; undefined where it demands no signature. */
function trustedKeys({ sources }: GateSettings, name: SourceName): readonly string[] | undefined {
  const keys = sources.find((each) => `${each.kind}:${each.name}` === name)?.verify?.keys
  return keys?.flatMap((key) => parseSigningKey(key)?.id ?? [])
}
