import type { AppliedPlace, AppliedReply } from '../../api/sources.ts'
import { canonicalJson } from '../../base/json.ts'
import { explainChange } from '../../decide/sources/diff-pod.ts'
import type { PodChange } from '../../decide/sources/diff-pod.ts'
import { podFromManifest } from '../../pod/schema/default-pod.ts'
import { documentKey, isPodDocument } from '../../pod/objects/document.ts'
import type { SourceDocument } from '../../pod/objects/document.ts'
import { digestText } from '../../pod/values/hash.ts'

/** The effect of manifests on one object. */
export interface ObjectChange extends Omit<PodChange, 'verdict'> {
  /** `pod default/web`, `ConfigMap default/conf` */
  readonly object: string
  /** `refuse`: something else bears the name already, and stays. */
  readonly verdict: PodChange['verdict'] | 'refuse'
}

export interface ManifestPlan {
  readonly documents: readonly SourceDocument[]
  readonly applied: AppliedReply
  /** Whether objects of a file that are in none of the documents are removed. */
  readonly replacesFile: (path: string) => boolean
  /** Whether a document would be read from where its object comes from now; by default they all are. */
  readonly standsIn?: (document: SourceDocument, path: string) => boolean
}

/** The changes in the order of the documents, then the removals. */
export function planManifests({
  documents,
  applied,
  replacesFile,
  standsIn = () => true,
}: ManifestPlan): readonly ObjectChange[] {
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
    return { object, ...explainChange(known, pod) }
  })
  const ends = [
    ...applied.pods.map(({ key, path }) => ({ key, path, object: `pod ${key}` })),
    ...applied.objects.map(({ key, path }) => ({ key, path, object: key })),
  ].filter(({ key, path }) => !wanted.has(key) && replacesFile(path))
  return [...changes, ...ends.map(({ object }) => ({ object, verdict: 'end' as const, details: [] }))]
}

/** Where an object comes from, as what is said of it. */
export function formatPlace({ path, source }: AppliedPlace): string {
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
}

/** `2 to create, 1 to replace, 5 unchanged` */
export function summarizeChanges(changes: readonly ObjectChange[]): string {
  const counts = (['create', 'update', 'replace', 'end', 'refuse', 'unchanged'] as const).flatMap(
    (verdict) => {
      const count = changes.filter((change) => change.verdict === verdict).length
      return count === 0 ? [] : [`${count} ${outcomes[verdict] ?? `to ${verdict}`}`]
    },
  )
  return counts.length === 0 ? 'nothing to apply' : counts.join(', ')
}
