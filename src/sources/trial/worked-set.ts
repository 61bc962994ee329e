import { createHash } from 'node:crypto'
import { sameData } from '../../base/json.ts'
import type { SourceDocument, SourceName, SourceSnapshot } from '../../pod/objects/document.ts'
import { isObjectDocument, isPodDocument } from '../../pod/objects/document.ts'
import type { LastGoodStore } from '../../store/last-good.ts'

/** The set that worked, as the source's snapshot; undefined where none can be read. Throws what the store throws. */
export async function loadWorkedSet(
  copies: LastGoodStore,
  { name, location }: { readonly name: SourceName; readonly location: string },
): Promise<SourceSnapshot | undefined> {
  const copy = await copies.load(name, location)
  if (copy === undefined) return undefined
  const pods = copy.documents.filter((document) => isPodDocument(document))
  return {
    source: name,
    location,
    ready: copy.isComplete,
    pods,
    objects: copy.documents.filter((document) => isObjectDocument(document)),
    problems: [
      {
        severity: 'error',
        place: { path: location },
        message: `podd crashed again and again after this source changed: the last set that worked runs instead (${pods.length} pods)`,
        hint: 'change the manifest that podd crashes on, or upgrade podd; `podd status` names the crash reports',
      },
    ],
  }
}

/** Equal for equal sets, wherever their documents stand. */
export function setSignature(documents: readonly SourceDocument[]): string {
  const text = JSON.stringify(documents.map(({ manifest, place }) => [manifest, place.path]))
  return createHash('sha256').update(text).digest('hex')
}

/** Whether two sets have equal signatures. What didn't change is the same object in both. */
export function isSameSet(before: readonly SourceDocument[], after: readonly SourceDocument[]): boolean {
  return before.length === after.length && after.every((document, at) => isSameDocument(before[at], document))
}

function isSameDocument(before: SourceDocument | undefined, after: SourceDocument): boolean {
  if (before === after) return true
  return before?.place.path === after.place.path && sameData(before.manifest, after.manifest)
}
