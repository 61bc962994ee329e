/*
 * The revisions of a unit: which of them its source offers, which one is active, which one it goes back to, and how one follows
 * from the other. Each function gives the record that follows; what the record says is in `describe-unit.ts`.
 */
import { sameData } from '../../base/json.ts'
import type { SourceDocument } from '../../pod/objects/document.ts'
import type { UnitVerdict } from './health-gate.ts'
import { hashContent, isTemplateUnit } from './unit-content.ts'
import type { UnitContent, UnitName } from './unit-content.ts'

/** How a container of a failed revision was at last. */
export interface ContainerEvidence {
  /** `namespace/name` */
  readonly pod: string
  readonly container: string
  readonly exitCode?: number | undefined
  /** `Error`, `OOMKilled`, `CrashLoopBackOff`, … */
  readonly reason?: string | undefined
  readonly message?: string | undefined
  /** The last lines of its log. */
  readonly lines: readonly string[]
}

/** Why a revision failed, kept for whoever looks. */
export interface RevisionFailure {
  /** `CrashLoopBackOff`, `ProgressDeadlineExceeded`, `PodFailed`, `StartupProbeFailed`, `PoddCrashed` */
  readonly reason: string
  readonly message: string
  /** Wall milliseconds. */
  readonly atMs: number
  readonly containers: readonly ContainerEvidence[]
  /**
   * Why each workload whose pods failed did, by `Kind/namespace/name`: others of the unit may be all right. Absent where that is
   * not known: podd crashed, or one of an older version wrote it.
   */
  readonly workloads?: Readonly<Record<string, string>> | undefined
  /** Pods of it have not come into effect: nothing is known against what they would run, so that nothing is undone for it. */
  readonly isHeld?: boolean | undefined
}

export interface Revision extends UnitContent {
  /** From 1 on, in the order in which they were offered. */
  readonly number: number
  /** When it was offered; wall milliseconds. */
  readonly atMs: number
  /** `superseded`: another one came before it was healthy. */
  readonly verdict: 'progressing' | 'healthy' | 'failed' | 'superseded'
  /** Its source demands signatures, and trusts none by which it is known: it is not gone back to. See `noteTrust`. */
  readonly isDistrusted?: boolean | undefined
  readonly failure?: RevisionFailure | undefined
  /** What its containers ran when it was found healthy. */
  readonly images?: readonly RanImage[] | undefined
}

/** A revision with what it consists of. */
export interface KeptRevision extends Pick<Revision, 'number' | 'atMs'> {
  readonly documents: readonly SourceDocument[]
  /** Clients wrote it over the API, and read it as they wrote it. */
  readonly isWritten?: boolean | undefined
}

/** An image that a container of a revision ran. */
export interface RanImage {
  /** `namespace/name` */
  readonly pod: string
  readonly container: string
  /** As its manifest names it. */
  readonly image: string
  /** What that meant. */
  readonly id: string
}

/**
 * Why another revision than the offered one is active. `failed`: it did not become healthy. `crashed`: podd crashed on it
 * again and again. `requested`: somebody rolled back.
 */
export type PinReason = 'failed' | 'crashed' | 'requested'

/** The record of a unit, kept on disk. */
export interface UnitRecord extends UnitName {
  /** Oldest first. */
  readonly revisions: readonly Revision[]
  /** The greatest number that was given, also of a revision that is no longer kept. */
  readonly latest: number
  /** The number of the revision that the source gives. */
  readonly offered: number
  /** The number of the one that counts. */
  readonly active: number
  /** The number of the one that it goes back to; absent while none was healthy. */
  readonly base?: number | undefined
  /** Absent where the offered one is active. */
  readonly pin?: { readonly why: PinReason; readonly atMs: number } | undefined
  /** Since when its source doesn't give it any more: only what failed of it is remembered. Wall milliseconds. */
  readonly goneAtMs?: number | undefined
}

/** How long what failed is remembered of a unit that its source doesn't give any more. */
const rememberGoneMs = 7 * 24 * 3_600_000

/** What is remembered of a unit that its source doesn't give any more; undefined for nothing. */
export function noteGone(record: UnitRecord, nowMs: number): UnitRecord | undefined {
  if (record.pin === undefined || record.pin.why === 'requested') return undefined
  const { goneAtMs = nowMs } = record
  return nowMs - goneAtMs < rememberGoneMs ? { ...record, goneAtMs } : undefined
}

/**
 * What an earlier record says about a unit that has this content: all, but of one that was gone only that the same content
 * failed.
 */
export function takeUp(earlier: UnitRecord, content: UnitContent, nowMs: number): UnitRecord | undefined {
  const { goneAtMs, ...record } = earlier
  if (goneAtMs === undefined) return earlier
  const isSame = gives(record, content)
  return isSame && noteGone(earlier, nowMs) !== undefined ? record : undefined
}

/** The record of a unit that was not known before. */
export function createUnitRecord(
  { source, unit }: UnitName,
  content: UnitContent,
  nowMs: number,
): UnitRecord {
  const first: Revision = { ...content, number: 1, atMs: nowMs, verdict: 'progressing' }
  return { source, unit, revisions: [first], latest: 1, offered: 1, active: 1 }
}

export function revisionOf({ revisions }: UnitRecord, number: number | undefined): Revision | undefined {
  return revisions.find((revision) => revision.number === number)
}

/** Whether it is the content that its source gave last. */
export function gives(record: UnitRecord, content: UnitContent): boolean {
  return revisionOf(record, record.offered)?.hash === matchWritten(record, content).hash
}

/**
 * A content that is written as a revision of this record is that revision, whatever podd understands of it by now: an update
 * of podd is no update of what runs.
 * @param writtenWhole of a template: of the whole workload, which an older podd recorded as `written`
 */
export function matchWritten(record: UnitRecord, content: UnitContent, writtenWhole?: string): UnitContent {
  const { hash, written } = content
  if (record.revisions.some((revision) => revision.hash === hash)) return content
  const known = [written, writtenWhole].flatMap((digest) =>
    digest === undefined ? [] : (record.revisions.findLast((revision) => revision.written === digest) ?? []),
  )[0]
  return known === undefined
    ? content
    : { ...content, hash: known.hash, hashWithoutSecrets: known.hashWithoutSecrets }
}

/** How often a content may fail in the place of one and the same healthy revision before it is not tried any more. */
const maxTries = 2

/**
 * The newest of these failed revisions that has a content which is not tried any more; undefined where it would be.
 * @param base the number of the one to go back to
 */
export function findGivenUp<Failed extends Pick<Revision, 'number' | 'hash'>>(
  failed: readonly Failed[],
  base: number | undefined,
  hash: string,
): Failed | undefined {
  const tries = failed.filter((each) => each.hash === hash && each.number > (base ?? Infinity))
  return tries.length < maxTries ? undefined : tries.at(-1)
}

/**
 * The source gives this content. What it gave before stays refused; what is active, too, needs no new number; anything else
 * is tried, also a content that failed at an earlier time, but not for ever: a source that gives two contents in turn would
 * have both run in turn. Gives the same record where nothing changed.
 * @param content as `matchWritten` gives it
 */
export function offerContent(record: UnitRecord, content: UnitContent, nowMs: number): UnitRecord {
  if (revisionOf(record, record.offered)?.hash === content.hash) return noteOrigin(record, content)
  if (revisionOf(record, record.active)?.hash === content.hash)
    return { ...record, offered: record.active, pin: undefined }
  const failed = record.revisions.filter(({ verdict }) => verdict === 'failed')
  const known = findGivenUp(failed, record.base, content.hash)
  if (known !== undefined) {
    const fallback = fallbackOf({ ...record, active: known.number })
    if (fallback !== undefined)
      return {
        ...record,
        revisions: supersede(record),
        offered: known.number,
        active: fallback.number,
        pin: { why: 'failed', atMs: nowMs },
      }
  }
  const number = record.latest + 1
  const next: Revision = { ...content, number, atMs: nowMs, verdict: 'progressing' }
  return {
    ...record,
    revisions: [...supersede(record), next],
    latest: number,
    offered: number,
    active: number,
    pin: undefined,
  }
}

/** What is offered is written or signed otherwise than before, and means the same. */
function noteOrigin(record: UnitRecord, { hash, written, signedBy }: UnitContent): UnitRecord {
  const isKnown = record.revisions.every(
    (each) => each.hash !== hash || (each.written === written && sameData(each.signedBy, signedBy)),
  )
  if (written === undefined || isKnown) return record
  const revisions = record.revisions.map((each) =>
    each.hash === hash ? { ...each, written, signedBy } : each,
  )
  return { ...record, revisions }
}

/**
 * A workload has so many pods by the template that is offered. One that was healthy without a pod was not tried: it is judged
 * with its first pods.
 */
export function noteScale(record: UnitRecord, { pods }: UnitContent): UnitRecord {
  const offered = revisionOf(record, record.offered)
  const isHealthy = offered?.verdict === 'healthy'
  if (offered === undefined || pods === offered.pods || (isHealthy && pods === 0)) return record
  const isUntried = record.pin === undefined && isHealthy && offered.pods === 0
  const verdict = isUntried ? 'progressing' : offered.verdict
  const revisions = record.revisions.map((each) => (each === offered ? { ...each, pods, verdict } : each))
  return { ...record, revisions }
}

const emptyHash = hashContent([])

/**
 * Marks the revisions that a key has signed which is not among those that its source trusts now, and those that are not known to
 * be signed: they are of a time when none had to be, or when podd did not note by whom. One without documents runs nothing, and
 * nothing in it tells who has signed it: it is not marked. What is active runs on; nothing goes back to a marked one. To be called
 * wherever one of the two may have changed.
 * @param trusted the IDs of its keys; undefined where it demands no signature
 */
export function noteTrust(record: UnitRecord, trusted: readonly string[] | undefined): UnitRecord {
  const isDistrusted = ({ hash, signedBy }: Revision): boolean =>
    trusted !== undefined &&
    hash !== emptyHash &&
    (signedBy === undefined || signedBy.some((id) => !trusted.includes(id)))
  if (record.revisions.every((each) => (each.isDistrusted === true) === isDistrusted(each))) return record
  const revisions = record.revisions.map(({ isDistrusted: _before, ...each }) =>
    isDistrusted(each) ? { ...each, isDistrusted: true } : each,
  )
  return { ...record, revisions }
}

/**
 * What a copy that was kept without Secrets stands for: the content that was offered, or the one that is active, where it
 * differs from it in these alone.
 */
export function matchCopy(record: UnitRecord, copy: UnitContent): UnitContent {
  const hash = copy.hashWithoutSecrets ?? copy.hash
  const known = [record.offered, record.active].map((number) => revisionOf(record, number))
  const isSame = known.some((revision) => revision?.hash === copy.hash)
  if (isSame) return copy
  return known.find((revision) => (revision?.hashWithoutSecrets ?? revision?.hash) === hash) ?? copy
}

/** What was offered from a copy without Secrets is given with them: it is the same revision. */
export function completeCopy(record: UnitRecord, content: UnitContent): UnitRecord {
  const offered = revisionOf(record, record.offered)
  const isCopy = offered?.hashWithoutSecrets === undefined && offered?.hash === content.hashWithoutSecrets
  if (offered === undefined || !isCopy) return record
  const { hash, hashWithoutSecrets } = content
  const revisions = record.revisions.map((each) =>
    each === offered ? { ...each, hash, hashWithoutSecrets } : each,
  )
  return { ...record, revisions }
}

/** What is progressing no longer is: another revision becomes active. */
function supersede(record: UnitRecord): readonly Revision[] {
  return record.revisions.map((revision) =>
    revision.verdict === 'progressing' ? { ...revision, verdict: 'superseded' } : revision,
  )
}

/** Whether it is not known yet that the active revision is healthy. One that was rolled back to by itself was. */
export function isJudged(record: UnitRecord): boolean {
  return revisionOf(record, record.active)?.verdict !== 'healthy'
}

/** The revision that the unit would go back to: the last that was healthy, unless it has no pods, or isn't trusted any more. */
export function fallbackOf(record: UnitRecord): Revision | undefined {
  const base = record.base === record.active ? undefined : revisionOf(record, record.base)
  return base !== undefined && base.pods > 0 && base.isDistrusted !== true ? base : undefined
}

/**
 * A revision is healthy, by default the active one: from now on it is the one to go back to. A template that makes no pod is not
 * tried: it isn't gone back to, and one that failed before still has.
 * @param images what its containers run
 */
export function noteHealthy(
  record: UnitRecord,
  number: number = record.active,
  images?: readonly RanImage[],
): UnitRecord {
  const { pods, verdict } = revisionOf(record, number) ?? {}
  const isUntried = isTemplateUnit(record) && pods === 0
  if (isUntried && verdict === 'failed') return record
  const healthy = withVerdict(record, number, { verdict: 'healthy', failure: undefined, images })
  return isUntried ? healthy : { ...healthy, base: number }
}

/**
 * The active revision failed. It is replaced by the one to go back to, where there is one, where that is allowed, and where
 * nobody asked for the failed one. Otherwise it stays, and may become healthy later.
 */
export function noteFailed(
  record: UnitRecord,
  failure: RevisionFailure,
  { why, mayRollBack }: { readonly why: 'failed' | 'crashed'; readonly mayRollBack: boolean },
): UnitRecord {
  const failed = withVerdict(record, record.active, { verdict: 'failed', failure })
  const fallback = fallbackOf(record)
  if (fallback === undefined || !mayRollBack || record.pin !== undefined) return failed
  return { ...failed, active: fallback.number, pin: { why, atMs: failure.atMs } }
}

/**
 * Pods of the active revision have not come into effect by their deadline. It stays, and may become healthy later.
 * @param mayCount its other pods are healthy: it is the one to go back to from now on, for their sake
 */
export function noteHeld(
  record: UnitRecord,
  failure: RevisionFailure,
  mayCount: boolean,
  images?: readonly RanImage[],
): UnitRecord {
  const held = withVerdict(record, record.active, {
    verdict: 'failed',
    failure: { ...failure, isHeld: true },
    ...(mayCount && { images }),
  })
  return mayCount ? { ...held, base: record.active } : held
}

/** More workloads of the active revision failed, which had failed by others before. Gives the same record where that is known. */
export function noteMoreFailed(
  record: UnitRecord,
  workloads: NonNullable<RevisionFailure['workloads']>,
): UnitRecord {
  const { verdict, failure } = revisionOf(record, record.active) ?? {}
  const known = failure?.workloads
  if (verdict !== 'failed' || failure === undefined || known === undefined) return record
  if (Object.keys(workloads).every((key) => Object.hasOwn(known, key))) return record
  const more = { ...failure, workloads: { ...workloads, ...known } }
  return withVerdict(record, record.active, { verdict, failure: more })
}

function withVerdict(
  record: UnitRecord,
  number: number,
  change: Pick<Revision, 'verdict' | 'failure' | 'images'>,
): UnitRecord {
  const revisions = record.revisions.map((each) => (each.number === number ? { ...each, ...change } : each))
  return { ...record, revisions }
}

/** What to go back to unless told: the newest revision that was healthy and differs from the active one. */
export function previousOf(record: UnitRecord): Revision | undefined {
  const active = revisionOf(record, record.active)
  return record.revisions.findLast(
    ({ number, hash, verdict, isDistrusted }) =>
      (verdict === 'healthy' || number === record.base) &&
      isDistrusted !== true &&
      number < record.active &&
      hash !== active?.hash,
  )
}

/** Somebody wants this revision, until the source gives something else. Gives why it can't be had in its place. */
export function rollBackTo(
  record: UnitRecord,
  to: number | undefined,
  nowMs: number,
): { readonly record: UnitRecord } | { readonly refusal: string } {
  const target = to === undefined ? previousOf(record) : revisionOf(record, to)
  if (target === undefined)
    return {
      refusal:
        to === undefined
          ? `no healthy revision is kept before revision ${record.active}, which is active`
          : `revision ${to} is not kept; there are ${record.revisions.map(({ number }) => number).join(', ')}`,
    }
  if (target.number === record.active) return { refusal: `revision ${target.number} is active already` }
  if (target.isDistrusted === true) return { refusal: explainTrust(target) }
  if (target.number === record.offered) return { record: resumeUnit(record) }
  const verdict = target.verdict === 'healthy' ? 'healthy' : 'progressing'
  const next = { ...record, revisions: supersede(record), active: target.number }
  return {
    record: {
      ...withVerdict(next, target.number, { verdict, failure: undefined }),
      pin: { why: 'requested', atMs: nowMs },
      ...(verdict === 'healthy' && { base: target.number }),
    },
  }
}

/** Somebody has what the source gives tried again. Gives why it can't be. */
export function resumeOnRequest(
  record: UnitRecord,
): { readonly record: UnitRecord } | { readonly refusal: string } {
  const offered = revisionOf(record, record.offered)
  if (record.pin !== undefined && offered?.isDistrusted === true) return { refusal: explainTrust(offered) }
  return { record: resumeUnit(record) }
}

/** What the source gives is tried again. */
export function resumeUnit(record: UnitRecord): UnitRecord {
  if (record.pin === undefined) return record
  const wasHealthy = revisionOf(record, record.offered)?.verdict === 'healthy'
  const verdict = record.offered === record.base && wasHealthy ? 'healthy' : 'progressing'
  const next = { ...record, revisions: supersede(record), active: record.offered, pin: undefined }
  return withVerdict(next, record.offered, { verdict, failure: undefined })
}

/** Why nothing goes back to a revision that is not trusted. */
export function explainTrust({ number, signedBy }: Revision): string {
  return signedBy === undefined
    ? `revision ${number} is not known to be signed by a key that its source trusts`
    : `revision ${number} is signed by key ${signedBy.join(', ')}, which its source no longer trusts`
}

/**
 * Keeps the newest `most` revisions and what is needed: what is offered, what is active, what it goes back to. Of others only
 * as many, the newest first, as have room.
 * @param bytesOf of a content, by its hash
 */
export function pruneRevisions(
  record: UnitRecord,
  { most, maxBytes, bytesOf }: { most: number; maxBytes: number; bytesOf: (hash: string) => number },
): UnitRecord {
  const needed = new Set([record.offered, record.active, record.base])
  const hashes = new Set<string>()
  let left = most
  let usedBytes = 0
  const kept = record.revisions.toReversed().filter(({ number, hash }) => {
    const addedBytes = hashes.has(hash) ? 0 : bytesOf(hash)
    const isNeeded = needed.has(number)
    if (!isNeeded && (left <= 0 || usedBytes + addedBytes > maxBytes)) return false
    left -= 1
    if (!isNeeded) usedBytes += addedBytes
    hashes.add(hash)
    return true
  })
  return kept.length === record.revisions.length ? record : { ...record, revisions: kept.toReversed() }
}

/** Where its active revision has failed: it has one to go back to, and nobody asked for the failed one. */
export function isToGoBack(record: UnitRecord): boolean {
  return record.pin === undefined && fallbackOf(record) !== undefined
}

/**
 * What follows from a verdict that isn't a good one. `hold`: see `noteHeld`. `fail`: see `noteFailed`. `go-back`: the revision is
 * known to have failed, and could not be gone back from before.
 */
export function decideStep(
  record: UnitRecord,
  verdict: Extract<UnitVerdict, { readonly kind: 'failed' | 'held' }>,
  facts: {
    /** For the sake of these failures it may go back. */
    readonly mayGoBack: boolean
    /** All pods of the revision are judged. */
    readonly isWhole: boolean
  },
): 'hold' | 'fail' | 'go-back' | 'wait' {
  const active = revisionOf(record, record.active)
  const wasHeld = active?.failure?.isHeld === true
  const isKnown = active?.verdict === 'failed'
  const mayGoBack = facts.mayGoBack && isToGoBack(record)
  // Where no pod of it may run here, what it goes back to is worth more.
  const hasNothingElse = verdict.kind === 'held' && verdict.rest === 'none' && facts.isWhole && mayGoBack
  if (verdict.kind === 'held' && !hasNothingElse) {
    if (record.base === record.active) return 'wait'
    return !isKnown || (wasHeld && verdict.rest === 'may-count') ? 'hold' : 'wait'
  }
  if (!isKnown || wasHeld) return 'fail'
  return mayGoBack ? 'go-back' : 'wait'
}
