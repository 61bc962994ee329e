import { stat } from 'node:fs/promises'
import { basename, dirname, join, parse, resolve } from 'node:path'
import type { ResourceObject } from '../../api/resource.ts'
import type { DaemonStatus } from '../../api/routes.ts'
import type { AppliedPlace, AppliedPodEntry, AppliedReply, UnitObject } from '../../api/sources.ts'
import { systemClock } from '../../base/clock.ts'
import { errorCode, errorMessage, PoddError } from '../../base/errors.ts'
import { isSourceUrl, showUrl } from '../../base/http.ts'
import { canonicalJson, jsonAt, sameData, textEntries } from '../../base/json.ts'
import type { JsonObject } from '../../base/json.ts'
import { readBounded } from '../../base/read-bounded.ts'
import { explainChange, formatDifferences } from '../../decide/sources/diff-pod.ts'
import type { PodChange } from '../../decide/sources/diff-pod.ts'
import { hashContent, hashDocument, writtenOf } from '../../decide/updates/unit-content.ts'
import { findGivenUp } from '../../decide/updates/unit-revisions.ts'
import { decodeDocuments, maxSourceBytes } from '../../pod/decode/decode-documents.ts'
import { documentKey, isPodDocument } from '../../pod/objects/document.ts'
import type { Place, SourceDocument } from '../../pod/objects/document.ts'
import { podFromManifest } from '../../pod/schema/default-pod.ts'
import { digestText } from '../../pod/values/hash.ts'
import { isManifestName } from '../../sources/read-manifest-file.ts'
import { listPath } from '../arguments/pod-argument.ts'
import type { VerbContext } from '../arguments/verb.ts'
import { ServerError } from '../client/client.ts'
import type { ReadManifest } from './read-manifests.ts'

/** A manifest with its file in the manifest directory. */
export interface ManifestTarget {
  readonly manifest: ReadManifest
  readonly path: string
}

/** The directory that manifests are written to. Throws PoddError NO_MANIFEST_DIRECTORY. */
export async function findManifestDirectory({ manifestDirectory }: AppliedReply): Promise<string> {
  const hint = 'Set staticPodPath (--pod-manifest-path) to a directory; see docs/OPTIONS.md.'
  if (manifestDirectory === undefined)
    throw new PoddError('NO_MANIFEST_DIRECTORY', 'podd reads no directory of manifests', { hint })
  const found = await stat(manifestDirectory).catch((error: unknown) =>
    errorCode(error) === 'ENOENT' ? 'does not exist' : `can't be read: ${errorMessage(error)}`,
  )
  if (typeof found !== 'string' && found.isDirectory()) return manifestDirectory
  const what = typeof found === 'string' ? found : 'is a single file'
  throw new PoddError('NO_MANIFEST_DIRECTORY', `the manifest directory ${manifestDirectory} ${what}`, {
    hint,
  })
}

/** The file of a manifest: its own name; for standard input and URLs the name of the first object. */
export function targetOf(manifest: ReadManifest, directory: string): ManifestTarget {
  const { base, dir } = parse(resolve(manifest.path))
  if (/^kustomization\.ya?ml$/u.test(base)) return { manifest, path: targetOfKustomization(dir, directory) }
  const isNameless = manifest.path === '-' || isSourceUrl(manifest.path)
  const path = isNameless ? undefined : resolve(manifest.path)
  if (path !== undefined && dirname(path) === resolve(directory)) return { manifest, path }
  const name = path === undefined ? undefined : basename(path)
  if (name !== undefined && isManifestName(name)) return { manifest, path: join(directory, name) }
  const first = manifest.documents[0]
  const own = first === undefined ? 'manifest' : objectName(first)
  return { manifest, path: join(directory, `${own}.yaml`) }
}

/** What a kustomization makes is named after its directory. Throws PoddError MANIFEST_ELSEWHERE. */
function targetOfKustomization(own: string, directory: string): string {
  if (own !== resolve(directory)) return join(directory, `${basename(own)}.yaml`)
  const message = `${own} is the manifest directory itself, whose kustomization podd builds by itself`
  const hint = 'Edit it there, or keep the kustomization in another directory, and apply that one.'
  throw new PoddError('MANIFEST_ELSEWHERE', message, { hint })
}

function objectName(document: SourceDocument): string {
  if (isPodDocument(document)) return document.pod.metadata.name
  const { kind, metadata } = document.object
  return `${kind.toLowerCase()}-${metadata.name}`
}

/** The current objects of a file, by key, as the daemon has them; not what its workloads make. */
export function objectsIn(path: string, applied: AppliedReply): readonly string[] {
  return [...applied.pods, ...applied.objects].flatMap((each) =>
    each.path === path && isWritten(each) ? [each.key] : [],
  )
}

/** Whether it stands in a manifest: no workload makes it. */
function isWritten({ owner }: AppliedPlace): boolean {
  return owner === undefined
}

/**
 * Tells of a manifest whether podd would read it from a place: it stands there, or it stands in no source, and would be
 * put there: by `podd apply`, or as the new content of the file of its name.
 * @param sources the directories and URLs that the daemon reads
 */
export function placesOfManifest(
  manifest: ReadManifest,
  { manifestDirectory }: AppliedReply,
  sources: readonly string[],
): (path: string) => boolean {
  const own = isSourceUrl(manifest.path) ? showUrl(manifest.path) : resolve(manifest.path)
  const isRead =
    manifest.path !== '-' && sources.some((source) => own === source || own.startsWith(`${source}/`))
  if (isRead) return (path) => path === own
  // Where nothing can be put anywhere, it is taken for the next version of what is there.
  if (manifestDirectory === undefined) return () => true
  const target = targetOf(manifest, manifestDirectory).path
  return (path) => path === own || path === target || basename(path) === basename(target)
}

/** The content of a file in the manifest directory, whether or not the daemon has read it. */
export interface TargetContent {
  /** Undefined where there is no file. */
  readonly text: Buffer | undefined
  /** The keys of all objects with a name, including refused ones. */
  readonly keys: readonly string[]
  /** Whether it has something without a name. */
  readonly isUnclear: boolean
}

/** Throws PoddError UNREADABLE. */
export async function readTarget(path: string, applied: AppliedReply): Promise<TargetContent> {
  const text = await readText(path)
  if (text === undefined) return { text, keys: [], isUnclear: false }
  const { documents, problems } = await decodeDocuments(text, { path, fieldValidation: 'Warn' })
  const refused = problems.filter(({ severity }) => severity === 'error')
  const keys = [
    ...documents.map((document) => appliedKey(document, applied)),
    ...refused.flatMap(({ object }) => object ?? []),
    ...objectsIn(path, applied),
  ]
  return { text, keys: [...new Set(keys)], isUnclear: refused.some(({ object }) => object === undefined) }
}

/**
 * Why a manifest can't be written to its file: another file, or the URL, has one of its objects, or the file has other
 * objects, which would be lost. Undefined where it can.
 */
export function targetProblem(
  { manifest, path }: ManifestTarget,
  content: TargetContent,
  applied: AppliedReply,
  overwrite: boolean,
): PoddError | undefined {
  const keys = manifest.documents.map((document) => appliedKey(document, applied))
  const elsewhere = [...applied.pods, ...applied.objects].find(
    (each) => keys.includes(each.key) && each.path !== path,
  )
  if (elsewhere !== undefined) {
    return new PoddError('MANIFEST_ELSEWHERE', `${elsewhere.key} ${formatPlace(elsewhere)}`, {
      hint:
        elsewhere.source === 'api'
          ? 'Change it with kubectl, or delete it with kubectl first.'
          : 'Change it there, or remove it there first.',
    })
  }
  const isFileItself = manifest.path !== '-' && resolve(manifest.path) === path
  if (overwrite || isFileItself) return undefined
  const hint = 'Rename your file, or confirm with --overwrite (of a --name: with --prune).'
  const generated = new Set(keys.flatMap((key) => generatedName(key) ?? []))
  const lost = content.keys.filter((key) => !keys.includes(key) && !generated.has(generatedName(key) ?? key))
  if (lost.length > 0)
    return new PoddError('MANIFEST_ELSEWHERE', `${path} also has ${lost.join(', ')}, which would end`, {
      hint,
    })
  if (content.isUnclear)
    return new PoddError('MANIFEST_ELSEWHERE', `${path} has errors, so its other objects are unknown`, {
      hint,
    })
  return undefined
}

/**
 * What a ConfigMap or Secret is called that kustomize generated, without the hash of its content: with another content it is
 * another object, which takes the place of that one (kustomize `api/hasher/hasher.go`, 5.5). Undefined for another key.
 */
function generatedName(key: string): string | undefined {
  return /^((?:ConfigMap|Secret)\/.+)-[2456789bcdfghkmt]{10}$/u.exec(key)?.[1]
}

async function readText(path: string): Promise<Buffer | undefined> {
  try {
    return await readBounded(path, { maxBytes: maxSourceBytes, clock: systemClock })
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined
    throw new PoddError('UNREADABLE', `cannot read ${path}: ${errorMessage(error)}`, { cause: error })
  }
}

/** Whether a file is unchanged since it was read; a missing file has no text. */
export async function isUnchanged(path: string, text: Uint8Array | undefined): Promise<boolean> {
  const now = await readText(path)
  return now === undefined || text === undefined ? now === text : now.equals(text)
}

export interface ObjectChange extends Omit<PodChange, 'verdict'> {
  /** `pod default/web`, `ConfigMap default/conf` */
  readonly object: string
  /**
   * `refuse`: something else bears the name already, or another revision of its file counts, and stays. `waits`: podd has it
   * already, and its old version still runs.
   */
  readonly verdict: PodChange['verdict'] | 'refuse' | 'waits'
}

/** What a unit gives already, and what does not count. */
export interface RefusedRevision {
  /** Where its objects come from. */
  readonly path: string
  readonly documents: readonly SourceDocument[]
  /** Why, and what to do. */
  readonly reason: string
}

/**
 * Of these manifests, those that change nothing where they are written: their unit gives the content already, and another
 * revision of it counts, or the content failed so often that it would be gone back from at once.
 * @param places where each manifest is read from, or would be
 */
export function findRefused(
  units: readonly UnitObject[],
  manifests: readonly ReadManifest[],
  places: (manifest: ReadManifest) => (path: string) => boolean,
  { sources }: DaemonStatus,
): readonly RefusedRevision[] {
  const placeOf = ({ metadata, spec }: UnitObject): string =>
    sources.find(({ source }) => source === metadata.name && source === spec.source)?.path ?? metadata.name
  return manifests.flatMap((manifest): readonly RefusedRevision[] => {
    const isPlace = places(manifest)
    const { documents } = manifest
    const hash = hashContent(documents.map((document) => hashDocument(document)))
    const written = writtenOf(documents)
    for (const unit of units) {
      const reason = isPlace(placeOf(unit)) ? refusalOf(unit, hash, written) : undefined
      if (reason !== undefined) return [{ path: placeOf(unit), documents, reason }]
    }
    return []
  })
}

function refusalOf(
  { metadata: { name }, status }: UnitObject,
  hash: string,
  written: string | undefined,
): string | undefined {
  const { active, offered, lastHealthy, message, revisions } = status
  // Another podd may have understood less of the same text.
  const known =
    revisions.find((each) => each.hash === hash) ??
    revisions.findLast((each) => written !== undefined && each.written === written)
  const numbers = revisions.flatMap((each) => (each.hash === known?.hash ? [each.number] : []))
  if (numbers.includes(active)) return undefined
  if (numbers.includes(offered))
    return `${message ?? `revision ${active} counts`}; try it again: podd resume ${name}`
  const failed = revisions.filter(({ verdict }) => verdict === 'Failed')
  const givenUp = known && findGivenUp(failed, lastHealthy, known.hash)
  return (
    givenUp &&
    `revision ${givenUp.number} failed with it, as one before did, and it is not tried any more; to have it tried, write it, then podd resume ${name}`
  )
}

/**
 * The changes in the order of the documents, then the removals.
 * @param replacesFile whether objects of a file that are in none of the documents are removed
 * @param standsIn whether a document would be read from where its object comes from now
 * @param refused what changes nothing
 */
export function planManifests(
  documents: readonly SourceDocument[],
  applied: AppliedReply,
  replacesFile: (path: string) => boolean,
  standsIn: (document: SourceDocument, path: string) => boolean = () => true,
  refused: readonly RefusedRevision[] = [],
): readonly ObjectChange[] {
  const pods = new Map(applied.pods.map((pod) => [pod.key, pod]))
  const objects = new Map(applied.objects.map((object) => [object.key, object]))
  const wanted = new Set(documents.map((document) => appliedKey(document, applied)))
  const changes = documents.map<ObjectChange>((document) => {
    const key = appliedKey(document, applied)
    const object = isPodDocument(document) ? `pod ${key}` : key
    const holder = isPodDocument(document) ? pods.get(key) : objects.get(key)
    if (holder !== undefined && !replacesFile(holder.path) && !standsIn(document, holder.path))
      return { object, verdict: 'refuse', details: [`it ${formatPlace(holder)}, and stays`] }
    if (!isPodDocument(document)) {
      const before = objects.get(key)
      const isSame = before?.hash === digestText(canonicalJson(document.manifest))
      const verdict = before === undefined ? 'create' : isSame ? 'unchanged' : 'update'
      return { object, verdict, details: [] }
    }
    const before = pods.get(key)
    const pod = renamed(document.pod, applied.podNameSuffix)
    const known = before && { pod: podFromManifest(before.manifest), isPastChange: before.isPastChange }
    return withWait({ object, ...explainChange(known, pod) }, before)
  })
  const reasons = new Map(
    refused.flatMap(({ documents: own, reason }) => own.map((document) => [document, reason] as const)),
  )
  const possible = changes.map((change, at): ObjectChange => {
    const document = documents[at]
    const reason = document && reasons.get(document)
    if (reason === undefined || change.verdict === 'unchanged') return change
    return { object: change.object, verdict: 'refuse', details: [reason] }
  })
  const stays = new Set(refused.map(({ path }) => path))
  const ends = [
    ...applied.pods.filter(isWritten).map(({ key, path }) => ({ key, path, object: `pod ${key}` })),
    ...applied.objects.filter(isWritten).map(({ key, path }) => ({ key, path, object: key })),
  ].filter(({ key, path }) => !wanted.has(key) && replacesFile(path) && !stays.has(path))
  return [...possible, ...ends.map(({ object }) => ({ object, verdict: 'end' as const, details: [] }))]
}

/** A manifest that podd has and that is not in effect is no unchanged pod. */
function withWait(change: ObjectChange, applied: AppliedPodEntry | undefined): ObjectChange {
  const { problem, isUpToDate = true } = applied ?? {}
  if (problem === undefined && isUpToDate) return change
  const why = problem ?? 'its old version runs until the new one can'
  if (change.verdict === 'unchanged') return { ...change, verdict: 'waits', details: [why] }
  return problem === undefined ? change : { ...change, details: [...change.details, `it waits: ${problem}`] }
}

function formatPlace({ path, source }: AppliedPlace): string {
  return source === 'api' ? 'was written over the API' : `stands in ${path}`
}

/** The key of a document's object where it is applied. */
export function appliedKey(document: SourceDocument, { podNameSuffix }: AppliedReply): string {
  const key = documentKey(document)
  return isPodDocument(document) ? `${key}${podNameSuffix}` : key
}

function renamed<T extends { readonly metadata: { readonly name: string } }>(pod: T, suffix: string): T {
  return suffix === ''
    ? pod
    : { ...pod, metadata: { ...pod.metadata, name: `${pod.metadata.name}${suffix}` } }
}

/**
 * The changes, with what changes in ConfigMaps and Secrets: the keys, and the values of ConfigMaps.
 * @param changes of these documents, in their order
 */
export async function explainObjects(
  { client, signal }: VerbContext,
  documents: readonly SourceDocument[],
  changes: readonly ObjectChange[],
): Promise<readonly ObjectChange[]> {
  return Promise.all(
    changes.map(async (change, at) => {
      const document = documents[at]
      if (change.verdict !== 'update' || document === undefined || isPodDocument(document)) return change
      const { kind, metadata } = document.object
      const resource = dataKinds[kind]
      if (resource === undefined || !('namespace' in metadata)) return change
      const { namespace, name } = metadata
      const path = `${listPath(resource, namespace)}/${encodeURIComponent(name)}`
      const found = await client.get<ResourceObject>(path, signal).catch((error: unknown) => {
        // It was removed in the meantime.
        if (!(error instanceof ServerError) || error.reason !== 'NotFound') throw error
      })
      if (found === undefined) return change
      const before = dataOf(found)
      const after = dataOf(document.manifest)
      if (jsonAt(found, 'immutable') === true && isOtherContent(before, after, document.manifest)) {
        const reason =
          'it is immutable, and stays: give the changed one another name, or remove the old one first'
        return { object: change.object, verdict: 'refuse', details: [reason] }
      }
      const details = kind === 'Secret' ? changedKeys(before, after) : changedLines(before, after)
      return { ...change, details }
    }),
  )
}

function isOtherContent(
  before: Readonly<Record<string, string>>,
  after: Readonly<Record<string, string>>,
  manifest: JsonObject,
): boolean {
  return manifest['immutable'] !== true || !sameData(before, after)
}

const dataKinds: Readonly<Record<string, string>> = { ConfigMap: 'configmaps', Secret: 'secrets' }

/** The entries of a ConfigMap or Secret; those of a Secret in base64. */
function dataOf(object: object): Readonly<Record<string, string>> {
  const entries = (key: string): readonly (readonly [string, string])[] =>
    Object.entries(textEntries(jsonAt(object, key)))
  const plain = entries('stringData').map(
    ([key, text]) => [key, Buffer.from(text).toString('base64')] as const,
  )
  return Object.fromEntries([...entries('binaryData'), ...entries('data'), ...plain])
}

function changedKeys(
  before: Readonly<Record<string, string>>,
  after: Readonly<Record<string, string>>,
): readonly string[] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((key) => {
    if (before[key] === after[key]) return []
    return [`${key} ${before[key] === undefined ? 'is new' : after[key] === undefined ? 'goes' : 'changes'}`]
  })
}

/** Of a text with several lines, the first that differs. */
function changedLines(
  before: Readonly<Record<string, string>>,
  after: Readonly<Record<string, string>>,
): readonly string[] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((key) => {
    const [old, now] = [before[key], after[key]]
    if (old === now) return []
    if (old === undefined || now === undefined || !`${old}${now}`.trimEnd().includes('\n'))
      return formatDifferences(old, now, key)
    const [oldLines, newLines] = [old.split('\n'), now.split('\n')]
    const at = newLines.findIndex((line, index) => line !== oldLines[index])
    const line = at < 0 ? newLines.length : at
    return formatDifferences(oldLines[line], newLines[line], `${key} line ${line + 1}`)
  })
}

/**
 * The same, with why what starts may not run here for now.
 * @param changes of these documents, in their order
 * @param blocked by the documents' places
 */
export function tellBlocked(
  changes: readonly ObjectChange[],
  documents: readonly SourceDocument[],
  blocked: ReadonlyMap<Place, string>,
): readonly ObjectChange[] {
  return changes.map((change, at): ObjectChange => {
    const document = documents[at]
    const why = document && blocked.get(document.place)
    const starts = ['create', 'update', 'replace'].includes(change.verdict)
    if (why === undefined || !starts) return change
    return {
      object: change.object,
      verdict: change.verdict,
      details: [...change.details, `it will wait: ${why}`],
    }
  })
}

/** One line for each actual change. */
export function formatChanges(changes: readonly ObjectChange[]): string {
  return changes
    .filter(({ verdict }) => verdict !== 'unchanged')
    .map(({ object, verdict, details }) => {
      const why = details.length === 0 ? '' : `: ${details.join('; ')}`
      return `${verdict.padEnd('replace'.length)}  ${object}${why}\n`
    })
    .join('')
}

const outcomes: { readonly [Verdict in ObjectChange['verdict']]?: string } = {
  refuse: 'refused',
  unchanged: 'unchanged',
  waits: 'not in effect yet',
}

/** `2 to create, 1 to replace, 5 unchanged` */
export function summarizeChanges(changes: readonly ObjectChange[]): string {
  const counts = (['create', 'update', 'replace', 'end', 'waits', 'refuse', 'unchanged'] as const).flatMap(
    (verdict) => {
      const count = changes.filter((change) => change.verdict === verdict).length
      return count === 0 ? [] : [`${count} ${outcomes[verdict] ?? `to ${verdict}`}`]
    },
  )
  return counts.length === 0 ? 'nothing to apply' : counts.join(', ')
}

/**
 * The error where one of these files is of a held source: it has no effect until the source is resumed.
 * @param done the participle for the message: `written`
 */
export function findHeld(
  { sources }: DaemonStatus,
  paths: readonly string[],
  done: string,
): PoddError | undefined {
  const held = sources.find(
    ({ heldSince, path }) =>
      heldSince !== undefined && paths.some((own) => own === path || own.startsWith(`${path}/`)),
  )
  if (held === undefined) return undefined
  const message = `the source ${held.source} is held: nothing of ${held.path} is applied`
  const hint = `The manifests are ${done}; \`podd resume ${held.source}\` applies that.`
  return new PoddError('WAIT_FAILED', message, { hint })
}

/** Throws PoddError WAIT_FAILED, as `findHeld` gives it. */
export function refuseHeld(status: DaemonStatus, paths: readonly string[], done: string): void {
  const held = findHeld(status, paths, done)
  if (held !== undefined) throw held
}
