import { basename } from 'node:path'
import { isJsonObject } from '../../base/json.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import { conflictProblem } from '../../decide/sources/merge-snapshots.ts'
import { withoutReadinessGates } from '../../decide/writing/check-object.ts'
import { judgeUpdate } from '../../decide/writing/judge-update.ts'
import { decodeObject, decodePod, digestWritten } from '../../pod/decode/decode-pod.ts'
import { errorAt } from '../../pod/objects/document.ts'
import type { WrittenMetadata, Problem, SourceDocument } from '../../pod/objects/document.ts'
import { objectFromManifest } from '../../pod/objects/local-object.ts'
import { isObjectKind } from '../../pod/objects/object-kinds.ts'
import { isWorkloadKind } from '../../pod/objects/workload-kinds.ts'
import { podFromManifest } from '../../pod/schema/default-pod.ts'
import { formatFieldPath } from '../../pod/schema/issues.ts'
import type { FieldProblem } from '../../pod/schema/issues.ts'

/** `Kind/namespace/name`; the namespace is empty for kinds without one. */
function keyOf({ kind, namespace, name }: ObjectName): string {
  return `${kind}/${namespace}/${name}`
}

/** The longest that every file system takes, less what an atomic write adds. */
const longestFileName = 200

/** The name of an object's file. */
export function fileNameOf(object: ObjectName & { readonly uid: string }): string {
  const { kind, namespace, name } = object
  const parts = [kind.toLowerCase(), ...(namespace === '' ? [] : [namespace]), name]
  const file = `${parts.join('.')}.json`
  // No name that leaves the directory gets past validation; what does gets none here.
  const isPlain = file.length <= longestFileName && /^[\w.:-]+$/u.test(file)
  return isPlain ? file : otherFileNameOf(object)
}

/** The name of an object's file where it can't have the other one. */
export function otherFileNameOf({ kind, uid }: Pick<ObjectName, 'kind'> & { readonly uid: string }): string {
  return `${kind.toLowerCase()}.${uid}.json`
}

/** Whether a file of this name is an object's; others are ignored. */
export function isObjectFile(name: string): boolean {
  return name.endsWith('.json') && !name.startsWith('.')
}

/**
 * Reads the text of an object's file, which may have been edited by hand.
 * @param before the object of this file so far
 * @returns the object to follow from now on, if it changes; and why the text isn't followed, if it isn't
 */
export function readObjectFile(
  text: string,
  path: string,
  before: KeptManifest | undefined,
): { readonly kept?: KeptManifest; readonly refusal?: string } {
  const manifest = parse(text)
  const named = manifest === undefined ? undefined : nameOfManifest(manifest)
  if (manifest === undefined || named === undefined)
    return { refusal: 'not an object as the API keeps them: JSON with kind, metadata.name and metadata.uid' }
  if (before !== undefined && (keyOf(before) !== keyOf(named) || before.uid !== named.uid))
    return { refusal: 'another object than before: its kind, name, namespace and uid cannot be changed' }
  const { document, problems } = decodeKept(manifest, path)
  const errors = problems.filter(({ severity }) => severity === 'error')
  if (before !== undefined) errors.push(...judgeUpdate(before.manifest, manifest, 'object'))
  const [first] = errors
  if (first === undefined) return { kept: { ...named, manifest, path, document } }
  const refusal = `${formatFieldPath(first.path)}: ${first.message}`
  const recovered = before === undefined ? recoverKept(manifest, path) : undefined
  if (recovered === undefined) return { refusal }
  return { refusal, kept: { ...named, manifest, path, document: recovered } }
}

/** Whether the text is an object's of another name. */
export function isOfAnother(text: string, object: ObjectName): boolean {
  const manifest = parse(text)
  const named = manifest === undefined ? undefined : nameOfManifest(manifest)
  return named !== undefined && keyOf(named) !== keyOf(object)
}

function parse(text: string): JsonObject | undefined {
  try {
    const value: Json = JSON.parse(text)
    return isJsonObject(value) ? value : undefined
  } catch {
    // It is not JSON.
    return undefined
  }
}

/** The identity of an object of the API. */
export interface ObjectName {
  readonly kind: string
  /** Empty where the kind belongs to none. */
  readonly namespace: string
  readonly name: string
}

/** An object that was written over the API, as it is kept. */
export interface KeptManifest extends ObjectName {
  readonly uid: string
  readonly manifest: JsonObject
  /** Its file. */
  readonly path: string
  /** Undefined for kinds that no pod refers to. */
  readonly document: SourceDocument | undefined
}

/** Undefined where a manifest lacks metadata that every object of the API has. */
export function nameOfManifest({ kind, metadata }: JsonObject): (ObjectName & { uid: string }) | undefined {
  if (typeof kind !== 'string' || !isJsonObject(metadata)) return undefined
  const { name, namespace = '', uid } = metadata
  if (typeof name !== 'string' || typeof namespace !== 'string' || typeof uid !== 'string') return undefined
  return { kind, namespace, name, uid }
}

/**
 * The document of a manifest that was valid when it was written and isn't by the rules of this version: its pod keeps
 * running. Undefined where it can't be decoded.
 */
function recoverKept(manifest: JsonObject, path: string): SourceDocument | undefined {
  const own = withoutReadinessGates(manifest)
  const origin = originOf(manifest, path)
  try {
    if (own['kind'] === 'Pod') return { pod: podFromManifest(own), manifest: own, ...origin }
    return { object: objectFromManifest(own), manifest: own, ...origin }
  } catch {
    // Its fields have other types than in this version.
    return undefined
  }
}

/** Decodes a manifest: the document for the sync loop, and the manifest's problems. */
export function decodeKept(
  manifest: JsonObject,
  path: string,
): { readonly document: SourceDocument | undefined; readonly problems: readonly FieldProblem[] } {
  const origin = originOf(manifest, path)
  const { kind } = manifest
  if (kind === 'Pod') {
    const { accepted, problems } = decodePod(withoutReadinessGates(manifest), 'Warn')
    return { document: accepted && { ...accepted, ...origin }, problems }
  }
  if (!isObjectKind(kind)) return { document: undefined, problems: [] }
  const { accepted, problems } = decodeObject(kind, manifest, 'Warn')
  return { document: accepted && { ...accepted, ...origin }, problems }
}

function originOf(manifest: JsonObject, path: string): Pick<SourceDocument, 'place' | 'written' | 'kept'> {
  return { place: { path }, written: digestWritten(manifest), kept: keptOf(manifest) }
}

function keptOf(manifest: JsonObject): WrittenMetadata {
  const metadata = isJsonObject(manifest['metadata']) ? manifest['metadata'] : {}
  const { uid, creationTimestamp } = metadata
  const createdAtMs = typeof creationTimestamp === 'string' ? Date.parse(creationTimestamp) : Number.NaN
  return {
    uid: typeof uid === 'string' ? uid : '',
    createdAtMs: Number.isNaN(createdAtMs) ? 0 : createdAtMs,
    metadata,
    ...(isWorkloadKind(manifest['kind']) && { spec: manifest['spec'] }),
  }
}

/** The objects that are followed: one for each name, and one for each UID of a kind. */
export class FollowedObjects {
  readonly #byKey = new Map<string, KeptManifest>()
  readonly #byUid = new Map<string, KeptManifest>()
  readonly #byPath = new Map<string, KeptManifest>()

  all(): readonly KeptManifest[] {
    return [...this.#byKey.values()]
  }

  get(object: ObjectName): KeptManifest | undefined {
    return this.#byKey.get(keyOf(object))
  }

  findByUid(kind: string, uid: string): KeptManifest | undefined {
    return this.#byUid.get(uidKeyOf({ kind, uid }))
  }

  findByPath(path: string): KeptManifest | undefined {
    return this.#byPath.get(path)
  }

  /** The one that has the name or the UID of this object, in another file. */
  findOther(kept: KeptManifest): KeptManifest | undefined {
    const found = [this.get(kept), this.findByUid(kept.kind, kept.uid)]
    return found.find((other) => other !== undefined && other.path !== kept.path)
  }

  set(kept: KeptManifest): void {
    const before = this.get(kept)
    if (before !== undefined) this.#deletePlaces(before)
    this.#byKey.set(keyOf(kept), kept)
    this.#byUid.set(uidKeyOf(kept), kept)
    this.#byPath.set(kept.path, kept)
  }

  delete(kept: KeptManifest): void {
    if (this.get(kept) === kept) this.#byKey.delete(keyOf(kept))
    this.#deletePlaces(kept)
  }

  /** Another object may have them by now. */
  #deletePlaces(kept: KeptManifest): void {
    if (this.findByUid(kept.kind, kept.uid) === kept) this.#byUid.delete(uidKeyOf(kept))
    if (this.findByPath(kept.path) === kept) this.#byPath.delete(kept.path)
  }
}

function uidKeyOf({ kind, uid }: Pick<KeptManifest, 'kind' | 'uid'>): string {
  return `${kind}/${uid}`
}

/** An object that podd has followed, and its file. */
export type EarlierObject = Pick<KeptManifest, 'namespace' | 'name' | 'path'>

/**
 * Objects in the order in which they are taken, where several have one name or one UID: first those that podd has
 * followed from their files, then those that it has followed from others, so that what runs keeps running; then those
 * whose files bear the names that podd gives them, then by the names of the files.
 * @param found in the order of the names of their files
 * @param findEarlier the object with the UID of this one that podd has followed, as far as is known
 */
export async function inOrderOfClaim<Found extends { readonly kept: KeptManifest }>(
  found: readonly Found[],
  findEarlier: (kept: KeptManifest) => Promise<EarlierObject | undefined>,
): Promise<readonly Found[]> {
  const counts = new Map<string, number>()
  const keys = ({ kept }: Found): readonly string[] => [`name ${keyOf(kept)}`, `uid ${uidKeyOf(kept)}`]
  for (const key of found.flatMap((each) => keys(each))) counts.set(key, (counts.get(key) ?? 0) + 1)
  const rank = async (each: Found): Promise<number> => {
    const { kept } = each
    if (!keys(each).some((key) => (counts.get(key) ?? 0) > 1)) return 0
    const earlier = await findEarlier(kept)
    if (earlier?.namespace === kept.namespace && earlier.name === kept.name)
      return earlier.path === kept.path ? 0 : 1
    return fileNameOf(kept) === basename(kept.path) ? 2 : 3
  }
  const ranked: { readonly each: Found; readonly rank: number }[] = []
  for (const each of found) ranked.push({ each, rank: await rank(each) })
  return ranked.toSorted((a, b) => a.rank - b.rank).map(({ each }) => each)
}

/**
 * Why the object in a file isn't followed.
 * @param followed the one that is; undefined once it was deleted over the API
 */
export function duplicateProblem(kept: KeptManifest, followed: KeptManifest | undefined): Problem {
  const object = nameOf(kept)
  const what = wordsFor(kept)
  if (followed === undefined) {
    const message = `${what} stood in another file too, and was deleted over the API; this one is not followed`
    const hint = 'Remove this file. podd follows it when it is changed, and when podd is started again.'
    return { ...errorAt(kept.path, message, hint), object }
  }
  const hint =
    'Remove one of the two files. To have both objects, give this one another metadata.name and metadata.uid.'
  if (keyOf(kept) === keyOf(followed))
    return conflictProblem({ place: { path: kept.path }, object, what, stays: followed.path, hint })
  const message = `${what} has the metadata.uid of ${wordsFor(followed)} in ${followed.path}, which is followed; this one is not`
  return { ...errorAt(kept.path, message, hint), object }
}

function nameOf({ namespace, name }: KeptManifest): string {
  return namespace === '' ? name : `${namespace}/${name}`
}

function wordsFor(kept: KeptManifest): string {
  return `${kept.kind === 'Pod' ? 'pod' : kept.kind} ${nameOf(kept)}`
}
