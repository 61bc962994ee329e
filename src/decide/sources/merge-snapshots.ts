/*
 * What shall run, of the snapshots of all sources together: of two documents for one name one is followed, objects are
 * seen where the configuration allows it; and what changed since an earlier snapshot.
 */
import { isDeepStrictEqual } from 'node:util'
import { isJsonObject, sameData } from '../../base/json.ts'
import { documentKey, isPodDocument, warningAt } from '../../pod/objects/document.ts'
import type {
  ObjectDocument,
  PodDocument,
  Problem,
  SourceDocument,
  SourceSnapshot,
} from '../../pod/objects/document.ts'
import { isNamespaced, keyOfObject } from '../../pod/objects/local-object.ts'
import type { ObjectKey, ObjectPolicies } from '../../pod/objects/local-object.ts'
import { objectKinds } from '../../pod/objects/object-kinds.ts'
import type { RuntimeClass } from '../../pod/objects/object-kinds.ts'
import { podNameTooLong } from '../../pod/validation/validate-pod.ts'
import { configNames, kindOfSource, podKey, policySettings, sourceWords } from '../../pod/values/ids.ts'
import type { PodKey, SourceName } from '../../pod/values/ids.ts'
import type { RuntimeClassFacts } from '../admission/resolve-classes.ts'

/** A document and the source that gave it. */
interface SourcedDocument<Document> {
  readonly document: Document
  readonly source: SourceName
}

/** An object's document and the source that gave it. */
export type SourcedObject = SourcedDocument<ObjectDocument>

/** The configuration about objects. */
export interface ObjectRules {
  readonly policies: ObjectPolicies
  /** RuntimeClasses of the configuration, by name: documents can't override them. */
  readonly runtimeClasses: ReadonlyMap<string, RuntimeClassFacts>
}

/**
 * The holder of a name, a pod's (PodKey) or another object's (ObjectKey); without a path, any document of that source.
 * @param asking the source of the competing document: its own holder comes first
 */
export type Incumbent = (
  key: PodKey | ObjectKey,
  asking: SourceName,
) => { readonly source: SourceName; readonly path?: string | undefined } | undefined

export interface MergedSnapshots {
  readonly wanted: ReadonlyMap<PodKey, SourcedDocument<PodDocument>>
  /** The followed objects, in the order of the sources; selectVisibleObjects tells which source sees which. */
  readonly objects: readonly SourcedObject[]
  readonly problems: readonly Problem[]
}

/**
 * Merges the snapshots of all sources. Of two documents for one name the incumbent stays (where the recorded pod came
 * from), else the first source, and in it the first path; the other is an error that names both. A document that its
 * source may not give is an error too.
 */
export function mergeSnapshots(
  snapshots: readonly SourceSnapshot[],
  incumbent: Incumbent,
  rules: ObjectRules,
): MergedSnapshots {
  const pods = mergePods(snapshots, incumbent)
  const objects = mergeObjects(snapshots, incumbent, rules)
  return {
    wanted: pods.wanted,
    objects: objects.objects,
    problems: [...snapshots.flatMap(({ problems }) => problems), ...pods.problems, ...objects.problems],
  }
}

/** The part of `mergeSnapshots` that is about pods. */
export function mergePods(
  snapshots: readonly SourceSnapshot[],
  incumbent: Incumbent,
): Pick<MergedSnapshots, 'wanted' | 'problems'> {
  const given = snapshots.flatMap(({ source, pods }) => pods.map((document) => ({ source, document })))
  const pods = settleConflicts(given, {
    identity: ({ document }) => podKey(document.pod.metadata),
    isEarlier: findEarlier(snapshots),
    incumbent,
  })
  return {
    wanted: new Map(pods.settled.map((sourced) => [podKey(sourced.document.pod.metadata), sourced])),
    problems: pods.problems,
  }
}

/** The part of `mergeSnapshots` that is about the objects that pods refer to. */
export function mergeObjects(
  snapshots: readonly SourceSnapshot[],
  incumbent: Incumbent,
  rules: ObjectRules,
): Pick<MergedSnapshots, 'objects' | 'problems'> {
  const given = snapshots.flatMap(({ source, objects }) => objects.map((document) => ({ source, document })))
  const { allowed, problems } = selectAllowedObjects(given, rules)
  const objects = settleConflicts(allowed, {
    identity: objectIdentity,
    isRankedBySource,
    isEarlier: findEarlier(snapshots),
    incumbent,
  })
  return { objects: objects.settled, problems: [...problems, ...objects.problems] }
}

export interface ConflictRules<Document> {
  /** The identity that two documents can't share. */
  readonly identity: (given: SourcedDocument<Document>) => string
  /** Whether the order of the sources decides, rather than which came first. */
  readonly isRankedBySource?: (given: SourcedDocument<Document>) => boolean
  /** Whether it is of an earlier revision: its file may not have it any more. */
  readonly isEarlier?: (given: SourcedDocument<SourceDocument>) => boolean
  readonly incumbent: Incumbent
}

/**
 * Of two documents for one identity the incumbent stays, else the first source, and in it the first path; the other is
 * an error that names both.
 * @param given in the order of the sources, and in each of the paths
 */
function settleConflicts<Document extends PodDocument | ObjectDocument>(
  given: readonly SourcedDocument<Document>[],
  { identity, incumbent, isRankedBySource = () => false, isEarlier = () => false }: ConflictRules<Document>,
): { readonly settled: readonly SourcedDocument<Document>[]; readonly problems: readonly Problem[] } {
  const settled = new Map<string, SourcedDocument<Document>>()
  const problems: Problem[] = []
  for (const next of given) {
    const contested = identity(next)
    const earlier = settled.get(contested)
    if (earlier === undefined) {
      settled.set(contested, next)
      continue
    }
    const isRanked = isRankedBySource(next) && next.source !== earlier.source
    const takesOver = !isRanked && isIncumbent(next, incumbent) && !isIncumbent(earlier, incumbent)
    const [stays, goes] = takesOver ? [next, earlier] : [earlier, next]
    settled.set(contested, stays)
    const key = documentKey(goes.document)
    if (isEarlier(goes)) {
      problems.push(earlierProblem(goes.document, stays.document))
      continue
    }
    problems.push(
      conflictProblem({
        place: goes.document.place,
        object: key,
        what: 'pod' in goes.document ? `pod ${key}` : key,
        stays: stays.document.place.path,
        hint: 'Remove one of the two, or give it another name.',
      }),
    )
  }
  return { settled: [...settled.values()], problems }
}

function findEarlier(
  snapshots: readonly SourceSnapshot[],
): (given: SourcedDocument<SourceDocument>) => boolean {
  const paths = new Map(snapshots.map(({ source, earlier }) => [source, earlier] as const))
  return ({ source, document }) => paths.get(source)?.includes(document.place.path) === true
}

/** Nothing is wrong with two files of which only an earlier revision of one gives what the other does. */
function earlierProblem(goes: SourceDocument, stays: SourceDocument): Problem {
  const key = documentKey(goes)
  const what = isPodDocument(goes) ? `pod ${key}` : key
  const message = `an earlier revision counts here, and gives ${what} too, which is followed from ${stays.place.path}`
  return warningAt(goes.place.path, message)
}

function isIncumbent(
  { source, document }: SourcedDocument<PodDocument | ObjectDocument>,
  incumbent: Incumbent,
): boolean {
  const holder = incumbent(documentKey(document), source)
  return holder?.source === source && (holder.path === undefined || holder.path === document.place.path)
}

/** The problem of a document that isn't followed, because another one gives its object. */
export function conflictProblem({
  what,
  stays,
  ...problem
}: Pick<Problem, 'place' | 'object' | 'hint'> & {
  /** The object. */
  readonly what: string
  /** The path of the document that is followed. */
  readonly stays: string
}): Problem {
  const message = `${what} stands in ${stays} too, which is followed; this one is not`
  return { severity: 'error', ...problem, message }
}

/**
 * The identity for which documents compete: each source has ConfigMaps and Secrets of its own; a claim is a directory
 * of the host, and a class applies to all pods.
 */
function objectIdentity({ source, document }: SourcedObject): string {
  const key = keyOfObject(document.object)
  return objectKinds[document.object.kind].isPerSource ? `${source} ${key}` : key
}

/** Whether the order of the sources decides between two of one name, rather than which came first. */
function isRankedBySource({ document: { object } }: SourcedObject): boolean {
  return !isNamespaced(object.kind)
}

/** Why a document isn't followed, and what to do about it. */
interface Refusal {
  readonly message: string
  readonly hint: string
}

/**
 * The objects that are allowed, before conflicts of names are resolved. RuntimeClasses and the default PriorityClass
 * apply to all pods: they come from the configuration, then from the manifest directory, and from another source only
 * where its policy allows it.
 * @param given in the order of the sources
 */
export function selectAllowedObjects(
  given: readonly SourcedObject[],
  rules: ObjectRules,
): { readonly allowed: readonly SourcedObject[]; readonly problems: readonly Problem[] } {
  const problems: Problem[] = []
  const allowed = given.filter((each) => {
    const refusal = refuseObject(each, rules) ?? refuseSecondDefault(each, given)
    if (refusal === undefined) return true
    const { place, object } = each.document
    problems.push({ severity: 'error', place, object: keyOfObject(object), ...refusal })
    return false
  })
  return { allowed, problems }
}

function refuseObject(
  { source, document: { object } }: SourcedObject,
  rules: ObjectRules,
): Refusal | undefined {
  const { givesClusterObjects } = rules.policies[kindOfSource(source)]
  if (object.kind === 'RuntimeClass') {
    return givesClusterObjects
      ? refuseShadowed(object, rules)
      : refuseClusterObject(source, `RuntimeClass ${object.metadata.name}`)
  }
  if (object.kind === 'PriorityClass' && object.globalDefault && !givesClusterObjects)
    return refuseClusterObject(source, `PriorityClass ${object.metadata.name}, which is the default,`)
  return undefined
}

function refuseClusterObject(source: SourceName, what: string): Refusal {
  return {
    message: `${what} holds for all pods, and ${sourceWords(source)} may not give such a class; it is not followed`,
    hint: `Set ${policySettings(source)}.givesClusterObjects in podd's configuration to allow it.`,
  }
}

function refuseShadowed(
  { metadata, handler, overhead }: RuntimeClass,
  { runtimeClasses }: ObjectRules,
): Refusal | undefined {
  const configured = runtimeClasses.get(metadata.name)
  if (configured === undefined) return undefined
  const same = configured.handler === handler && sameData(configured.overhead ?? {}, overhead?.podFixed ?? {})
  if (same) return undefined
  return {
    message: `RuntimeClass ${metadata.name} stands in runtimeClasses of podd's configuration too, which is followed; this one is not`,
    hint: 'Remove one of the two, or give it another name.',
  }
}

/** Of two defaults the first counts (`plugin/pkg/admission/priority`, validatePriorityClass, 1.36). */
function refuseSecondDefault(
  { document: { object } }: SourcedObject,
  given: readonly SourcedObject[],
): Refusal | undefined {
  if (object.kind !== 'PriorityClass' || !object.globalDefault) return undefined
  const first = given.find(
    ({ document: { object: other } }) => other.kind === 'PriorityClass' && other.globalDefault,
  )
  if (first === undefined || keyOfObject(first.document.object) === keyOfObject(object)) return undefined
  return {
    message: `PriorityClass ${first.document.object.metadata.name} in ${first.document.place.path} is already marked as default; only one default can exist`,
    hint: 'Remove globalDefault from one of the two.',
  }
}

/** The objects that the pods of a source see, its own first. */
export function selectVisibleObjects(
  objects: readonly SourcedObject[],
  source: SourceName,
  policies: ObjectPolicies,
): ReadonlyMap<ObjectKey, SourcedObject> {
  const seen = objects.filter((object) => isVisible(object, source, policies))
  const own = seen.filter((object) => object.source === source)
  const others = seen.filter((object) => object.source !== source)
  const byKey = new Map<ObjectKey, SourcedObject>()
  for (const object of [...own, ...others]) {
    const key = keyOfObject(object.document.object)
    if (!byKey.has(key)) byKey.set(key, object)
  }
  return byKey
}

function isVisible(object: SourcedObject, source: SourceName, policies: ObjectPolicies): boolean {
  if (object.source === source) return true
  if (!isNamespaced(object.document.object.kind))
    return policies[kindOfSource(object.source)].givesClusterObjects
  return policies[kindOfSource(source)].readsObjectsOf.includes(kindOfSource(object.source))
}

/** The addition to a message about a missing object where `source` may not read an existing one. */
export function explainHidden(source: SourceName, owner: SourceName): string {
  return `${sourceWords(owner)} gives one, which the pods of ${sourceWords(source)} may read only where ${policySettings(source)}.readsObjectsOf in podd's configuration has "${configNames[kindOfSource(owner)]}"`
}

/** The pod under the name that the kubelet would give it: `<name>-<node>` (`podNameSuffix: node`). */
export function renamePod({ pod, manifest, ...document }: PodDocument, suffix: string): PodDocument {
  const name = `${pod.metadata.name}${suffix}`
  const metadata = isJsonObject(manifest['metadata']) ? manifest['metadata'] : {}
  return {
    ...document,
    pod: { ...pod, metadata: { ...pod.metadata, name } },
    manifest: { ...manifest, metadata: { ...metadata, name } },
  }
}

/** Why a pod can't have the name that it was given so. */
export function renamedPodProblem({ pod, place }: PodDocument, suffix: string): Problem | undefined {
  const refusal = podNameTooLong(pod.metadata)
  if (refusal === undefined) return undefined
  return {
    severity: 'error',
    place,
    field: 'metadata.name',
    reason: 'RefusedHere',
    message: `not supported: with the suffix ${JSON.stringify(suffix)} of podNameSuffix, ${refusal}`,
    object: podKey(pod.metadata),
  }
}

/**
 * The changes that a held source would make if it were followed: `Pod default/web`, `ConfigMap default/settings`, … in
 * order.
 */
export interface PendingChanges {
  readonly added: readonly string[]
  readonly changed: readonly string[]
  readonly removed: readonly string[]
}

/** From the documents that are held to those that the source gives now. Only manifests count, not their places. */
export function diffDocuments(
  held: readonly SourceDocument[],
  given: readonly SourceDocument[],
): PendingChanges {
  const before = new Map(held.map((document) => [documentKey(document), document]))
  const after = new Map(given.map((document) => [documentKey(document), document]))
  const named = (documents: Iterable<SourceDocument>): readonly string[] =>
    [...documents].map((document) => nameOf(document)).toSorted()
  return {
    added: named([...after].flatMap(([key, document]) => (before.has(key) ? [] : [document]))),
    changed: named(
      [...after].flatMap(([key, document]) => {
        const old = before.get(key)
        return old === undefined || isDeepStrictEqual(old.manifest, document.manifest) ? [] : [document]
      }),
    ),
    removed: named([...before].flatMap(([key, document]) => (after.has(key) ? [] : [document]))),
  }
}

function nameOf(document: SourceDocument): string {
  const { kind, metadata } = isPodDocument(document)
    ? { kind: 'Pod', metadata: document.pod.metadata }
    : document.object
  const namespace = 'namespace' in metadata ? `${metadata.namespace}/` : ''
  return `${kind} ${namespace}${metadata.name}`
}

/** `2 added, 1 changed`; empty for none. */
export function summarizePending({ added, changed, removed }: PendingChanges): string {
  const counts = [
    [added.length, 'added'],
    [changed.length, 'changed'],
    [removed.length, 'removed'],
  ] as const
  return counts
    .filter(([count]) => count > 0)
    .map(([count, word]) => `${count} ${word}`)
    .join(', ')
}
