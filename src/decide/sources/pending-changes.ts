import { isDeepStrictEqual } from 'node:util'
import type { SourceDocument } from '../../pod/objects/document.ts'
import { documentKey, isPodDocument } from '../../pod/objects/document.ts'

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
