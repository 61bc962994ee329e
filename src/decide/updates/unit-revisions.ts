/*
 * The revisions of a unit: what goes forward and back together, a file of a directory or the whole answer of a URL; of what was
 * written over the API a pod, or the template of a workload. Which of them its source offers, which one is active, which one it
 * goes back to, and why these differ.
 */
import type { UnitState } from '../../api/sources.ts'
import { canonicalJson, jsonAt, sameData } from '../../base/json.ts'
import type { JsonObject } from '../../base/json.ts'
import { isObjectDocument, isPodDocument } from '../../pod/objects/document.ts'
import type { Problem, SourceDocument, SourceSnapshot } from '../../pod/objects/document.ts'
import { keyOfObject } from '../../pod/objects/local-object.ts'
import type { LocalObject } from '../../pod/objects/local-object.ts'
import { isBatchKind, isReplicaKind } from '../../pod/objects/workload-kinds.ts'
import { digestText } from '../../pod/values/hash.ts'
import { kindOfSource, podKey } from '../../pod/values/ids.ts'
import type { SourceName } from '../../pod/values/ids.ts'
import { rollbackAnnotation } from './health-gate.ts'
import type { UnitVerdict } from './health-gate.ts'

/**
 * The unit that a document belongs to: its file, the whole of a URL, or itself where it is a pod that was written over the
 * API, or a workload whose pods run on. Undefined for other objects of the API: how they do is known by the pods that use
 * them alone, and what a Job does is done.
 */
function unitOf({ source }: Pick<SourceSnapshot, 'source'>, document: SourceDocument): string | undefined {
  if (isPodDocument(document)) return unitOfOrigin(source, document.place.path, podKey(document.pod.metadata))
  const { object, place } = document
  return unitOfOrigin(source, place.path, isReplicaKind(object.kind) ? keyOfObject(object) : undefined)
}

/** @param key of an object that is a unit where it was written over the API */
export function unitOfOrigin<Key extends string | undefined>(
  source: SourceName,
  path: string,
  key: Key,
): string | Key {
  const kind = kindOfSource(source)
  if (kind === 'http') return source
  if (kind === 'file') return path
  return key === undefined ? key : `${source}:${key}`
}

/** What each unit gives, by its name. A URL is a unit also where it gives nothing, once it has answered. */
export function unitsOf(snapshot: SourceSnapshot): ReadonlyMap<string, readonly SourceDocument[]> {
  const units = new Map<string, SourceDocument[]>()
  if (kindOfSource(snapshot.source) === 'http' && snapshot.ready) units.set(snapshot.source, [])
  for (const document of [...snapshot.pods, ...snapshot.objects]) {
    const name = unitOf(snapshot, document)
    if (name === undefined) continue
    const documents = units.get(name)
    if (documents === undefined) units.set(name, [document])
    else documents.push(document)
  }
  return units
}

/**
 * A snapshot in which these units give something else. Their Jobs and CronJobs stay as they are offered now: what an older
 * revision's Job did is done, and it would run again after the newer one.
 * @param unread those of which it is not known now what counts: their pods stay as they are
 */
export function replaceUnits(
  snapshot: SourceSnapshot,
  replaced: ReadonlyMap<string, readonly SourceDocument[]>,
  unread: readonly string[],
): SourceSnapshot {
  const isBatch = (document: SourceDocument): boolean =>
    isObjectDocument(document) && isBatchKind(document.object.kind)
  const kept = (document: SourceDocument): boolean =>
    isBatch(document) || !replaced.has(unitOf(snapshot, document) ?? '')
  const given: readonly SourceDocument[] = [...snapshot.pods, ...snapshot.objects]
  const active = [...replaced.values()].flatMap((all) => all.filter((document) => !isBatch(document)))
  const paths =
    kindOfSource(snapshot.source) === 'api'
      ? given.flatMap((document) =>
          unread.includes(unitOf(snapshot, document) ?? '') ? [document.place.path] : [],
        )
      : unread
  return {
    ...snapshot,
    ...(unread.length > 0 &&
      (kindOfSource(snapshot.source) === 'http'
        ? { ready: false, isAnswer: false }
        : { unreadable: [...(snapshot.unreadable ?? []), ...paths] })),
    pods: inOrder([...snapshot.pods.filter(kept), ...active.filter((each) => isPodDocument(each))]),
    objects: inOrder([...snapshot.objects.filter(kept), ...active.filter((each) => isObjectDocument(each))]),
  }
}

/**
 * An earlier version of an object of the API is the same object: it has the UID and the file of the newest. Of a workload only
 * the template is the earlier one; how many pods are made by it, and how they are replaced, is as in the newest.
 */
export function asWritten(document: SourceDocument, newest: SourceDocument): SourceDocument {
  const identity = { kept: newest.kept, place: newest.place }
  if (isPodDocument(document) || isPodDocument(newest)) return { ...document, ...identity }
  const object = withTemplateOf(newest.object, document.object)
  return { ...document, ...identity, object, newest: newest.manifest }
}

function withTemplateOf(newest: LocalObject, earlier: LocalObject): LocalObject {
  if (newest.kind === 'Deployment' && earlier.kind === 'Deployment')
    return { ...newest, spec: { ...newest.spec, template: earlier.spec.template } }
  if (newest.kind === 'StatefulSet' && earlier.kind === 'StatefulSet')
    return { ...newest, spec: { ...newest.spec, template: earlier.spec.template } }
  if (newest.kind === 'DaemonSet' && earlier.kind === 'DaemonSet')
    return { ...newest, spec: { ...newest.spec, template: earlier.spec.template } }
  return earlier
}

/** Whether what was written over the API goes back where it fails: a client expects to read what it wrote. */
export function askForRollback(documents: readonly SourceDocument[]): boolean {
  return documents.every(({ manifest }) =>
    [manifest, jsonAt(manifest, 'spec', 'template')].some(
      (each) => jsonAt(each, 'metadata', 'annotations', rollbackAnnotation) === 'true',
    ),
  )
}

/** By path, as their source orders them; those of one path stay in their order. */
function inOrder<Document extends SourceDocument>(documents: readonly Document[]): readonly Document[] {
  return documents.toSorted(({ place: { path: a } }, { place: { path: b } }) =>
    a === b ? 0 : a < b ? -1 : 1,
  )
}

/**
 * Whether a unit is a workload that was written over the API. Its revisions are its templates, as in Kubernetes
 * (`pkg/controller/deployment/util`, `pkg/controller/history`, 1.36): to scale or label it makes none.
 */
export function isTemplateUnit({ source, unit }: Pick<UnitRecord, 'source' | 'unit'>): boolean {
  return kindOfSource(source) === 'api' && isReplicaKind(unit.slice(source.length + 1).split('/', 1)[0] ?? '')
}

/** Of the template of a workload that was written over the API, as podd understands it. */
export function hashTemplate(manifest: JsonObject): string {
  return digestText(canonicalJson({ template: jsonAt(manifest, 'spec', 'template') ?? null }))
}

/** Of the same as it was written; undefined where that is not known. */
export function writtenTemplate({ kept }: SourceDocument): string | undefined {
  const template = jsonAt(kept?.spec, 'template')
  return template === undefined ? undefined : digestText(canonicalJson(template))
}

/** Of one document of a unit, as podd understands it. */
export function hashDocument(document: SourceDocument): string {
  const owner = isPodDocument(document) ? document.owner : undefined
  return digestText(canonicalJson({ manifest: document.manifest, owner }))
}

/** Of what a unit consists of, from those of its documents; a server may give them in any order. */
export function hashContent(documents: readonly string[]): string {
  return digestText(documents.toSorted().join('\n'))
}

/** Of the texts that a unit's documents stood in; undefined where that is not known of all. */
export function writtenOf(documents: readonly SourceDocument[]): string | undefined {
  const known = documents.flatMap(({ written }) => written ?? [])
  if (known.length === 0 || known.length < documents.length) return undefined
  return digestText([...new Set(known)].toSorted().join('\n'))
}

/** The keys that have signed documents, by their IDs; undefined where one is not signed. */
export function signersOf(documents: readonly SourceDocument[]): readonly string[] | undefined {
  const known = documents.flatMap(({ signedBy }) => signedBy ?? [])
  return known.length === 0 || known.length < documents.length ? undefined : [...new Set(known)].toSorted()
}

/** What a unit gives, as far as revisions go. */
export interface UnitContent {
  /** Of its documents, as podd understood them when it was new; equal contents have equal hashes. */
  readonly hash: string
  /** Of what its source wrote; absent where an older podd recorded it. */
  readonly written?: string | undefined
  /** The IDs of the keys that have signed it; absent where none had to. */
  readonly signedBy?: readonly string[] | undefined
  /** Of those without Secrets, by which a copy that was kept without them is known; absent where it has none. */
  readonly hashWithoutSecrets?: string | undefined
  /** How many pods it has; of a template that was healthy, how many it had last while it had any. */
  readonly pods: number
  /** What the source itself calls it: an ETag. */
  readonly sourceRevision?: string | undefined
  /** Of a URL: SHA-256 of the answer as the server sent it. */
  readonly digest?: string | undefined
}

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
export interface UnitRecord {
  readonly source: SourceName
  /** The path of a file, or the name of a URL's source. */
  readonly unit: string
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
  { source, unit }: Pick<UnitRecord, 'source' | 'unit'>,
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
 * The source gives this content. What it gave before stays refused; what is active, too, needs no new number; anything else
 * is tried, also a content that failed at an earlier time, but not for ever: a source that gives two contents in turn would
 * have both run in turn. Gives the same record where nothing changed.
 * @param content as `matchWritten` gives it
 */
export function offerContent(record: UnitRecord, content: UnitContent, nowMs: number): UnitRecord {
  if (revisionOf(record, record.offered)?.hash === content.hash) return noteOrigin(record, content)
  if (revisionOf(record, record.active)?.hash === content.hash)
    return { ...record, offered: record.active, pin: undefined }
  const failures = record.revisions.filter(
    ({ number, hash, verdict }) =>
      hash === content.hash && verdict === 'failed' && number > (record.base ?? Infinity),
  )
  const known = failures.at(-1)
  if (known !== undefined && failures.length >= maxTries) {
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

/**
 * Marks the revisions that a key has signed which is not among those that its source trusts now, and those that are not known to
 * be signed: they are of a time when none had to be, or when podd did not note by whom. What is active runs on; nothing goes back
 * to a marked one. To be called wherever one of the two may have changed.
 * @param trusted the IDs of its keys; undefined where it demands no signature
 */
export function noteTrust(record: UnitRecord, trusted: readonly string[] | undefined): UnitRecord {
  const isDistrusted = ({ signedBy }: Revision): boolean =>
    trusted !== undefined && (signedBy === undefined || signedBy.some((id) => !trusted.includes(id)))
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

/** Why another revision counts than the offered one, or why the offered one should not; undefined where all is well. */
export function describeRecord(record: UnitRecord): string | undefined {
  const { offered, active, pin } = record
  const failed = revisionOf(record, offered)
  const current = revisionOf(record, active)
  const trust = current?.isDistrusted === true ? `; ${explainTrust(current)}` : ''
  if (pin?.why === 'requested')
    return `revision ${active} counts on request, and revision ${offered} is offered${trust}`
  if (pin !== undefined)
    return `revision ${offered} failed, and revision ${active} counts again: ${whyFailed(failed)}${trust}`
  if (failed?.verdict === 'failed' && failed.failure?.isHeld === true)
    return `revision ${offered} is not in effect as a whole, and stays: ${whyFailed(failed)}`
  if (failed?.verdict === 'failed' && fallbackOf(record) !== undefined)
    return `revision ${offered} failed, and is not rolled back: ${whyFailed(failed)}`
  const base = record.base === active ? undefined : revisionOf(record, record.base)
  if (failed?.verdict === 'failed' && base?.isDistrusted === true)
    return `revision ${offered} failed, and stays: ${explainTrust(base)}: ${whyFailed(failed)}`
  return undefined
}

/** Why nothing goes back to a revision that is not trusted. */
function explainTrust({ number, signedBy }: Revision): string {
  return signedBy === undefined
    ? `revision ${number} is not known to be signed by a key that its source trusts`
    : `revision ${number} is signed by key ${signedBy.join(', ')}, which its source no longer trusts`
}

/** That the active revision is not trusted any more, and what follows; undefined where it is. */
export function describeTrust(record: UnitRecord): string | undefined {
  const active = revisionOf(record, record.active)
  return active?.isDistrusted === true
    ? `${explainTrust(active)}: it runs on until its source gives something else, and nothing goes back to it`
    : undefined
}

/** What of a unit is worth a look: as `describeRecord`, that its first revision failed, or that it is not trusted. */
export function explainRecord(record: UnitRecord): string | undefined {
  const active = revisionOf(record, record.active)
  return (
    describeRecord(record) ??
    (active?.verdict === 'failed'
      ? `revision ${record.active} failed, and none is kept to go back to: ${whyFailed(active)}`
      : describeTrust(record))
  )
}

/** How a unit does, by its record alone. */
export function stateOfRecord({ active, pin, revisions }: UnitRecord): UnitState {
  if (pin !== undefined) return pin.why === 'requested' ? 'RollbackRequested' : 'RolledBack'
  const verdict = revisions.find(({ number }) => number === active)?.verdict
  if (verdict === 'failed') return 'Failed'
  return verdict === 'healthy' ? 'Healthy' : 'Progressing'
}

function whyFailed(revision: Revision | undefined): string {
  return revision?.failure?.message ?? 'it did not become healthy'
}

/** @param path where the unit is */
export function problemOf(record: UnitRecord, path: string): Problem | undefined {
  const message = describeRecord(record)
  const trust = describeTrust(record)
  if (message === undefined && trust !== undefined)
    return {
      severity: 'warning',
      place: { path },
      message: trust,
      hint: 'Sign it again, by a key that `verify` of its source lists.',
    }
  if (message === undefined) return undefined
  const isRequested = record.pin?.why === 'requested'
  if (record.pin === undefined && revisionOf(record, record.offered)?.failure?.isHeld === true)
    return {
      severity: 'warning',
      place: { path },
      message,
      hint: 'What it waits for stands with the pod, too: `podd describe pod POD`. It starts by itself once it may.',
    }
  return {
    severity: isRequested ? 'warning' : 'error',
    place: { path },
    message,
    hint: isRequested
      ? `\`podd resume ${record.unit}\` has what the source gives count again.`
      : `\`podd history ${record.unit}\` shows the last log lines. Correct it, or try it again: \`podd resume ${record.unit}\`.`,
  }
}
