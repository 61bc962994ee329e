/*
 * What goes forward and back together, a unit: a file of a directory or the whole answer of a URL; of what was written over the
 * API a pod, or the template of a workload. What belongs to each, by what its contents are told apart, and what a source gives
 * where some of its units give something else.
 */
import { canonicalJson, jsonAt } from '../../base/json.ts'
import type { JsonObject } from '../../base/json.ts'
import { isObjectDocument, isPodDocument } from '../../pod/objects/document.ts'
import type { SourceDocument, SourceSnapshot } from '../../pod/objects/document.ts'
import { keyOfObject } from '../../pod/objects/local-object.ts'
import type { LocalObject } from '../../pod/objects/local-object.ts'
import { isBatchKind, isReplicaKind } from '../../pod/objects/workload-kinds.ts'
import { digestText } from '../../pod/values/hash.ts'
import { kindOfSource, podKey } from '../../pod/values/ids.ts'
import type { SourceName } from '../../pod/values/ids.ts'
import { rollbackAnnotation } from './health-gate.ts'

/** By its source and its name there: the path of a file, the name of a URL's source, `api:NAMESPACE/NAME`, `api:KIND/NAMESPACE/NAME`. */
export interface UnitName {
  readonly source: SourceName
  readonly unit: string
}

/**
 * The unit that a document belongs to: its file, the whole of a URL, or itself where it is a pod that was written over the
 * API, or a workload whose pods run on. Undefined for other objects of the API: how they do is known by the pods that use
 * them alone, and what a Job does is done.
 */
export function unitOf(
  { source }: Pick<SourceSnapshot, 'source'>,
  document: SourceDocument,
): string | undefined {
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
    earlier: [...new Set(active.map(({ place }) => place.path))],
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
export function isTemplateUnit({ source, unit }: UnitName): boolean {
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
