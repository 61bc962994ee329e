import { sameData } from '../../base/json.ts'
import type { PodDocument, SourceSnapshot } from '../../pod/objects/document.ts'
import { podKey } from '../../pod/values/ids.ts'
import type { SourcedDocument } from './settle-rivals.ts'

/**
 * The pods that the sources give another document of than before. Undefined where more than that may have changed: which
 * pods there are, where each stands, or what the sources say of themselves. Where no two documents competed for a name
 * before, none do then. Documents are compared by identity.
 * @param before and `after` in the order of the sources
 */
export function selectChangedPods(
  before: readonly SourceSnapshot[],
  after: readonly SourceSnapshot[],
): readonly SourcedDocument<PodDocument>[] | undefined {
  if (before.length !== after.length) return undefined
  const changed: SourcedDocument<PodDocument>[] = []
  for (const [at, { source, pods }] of after.entries()) {
    const old = before[at]
    if (old === undefined || !isLike(old, after[at])) return undefined
    // By index: there may be thousands, and a change of one is to cost little.
    for (let index = 0; old.pods !== pods && index < pods.length; index += 1) {
      const known = old.pods[index]
      const document = pods[index]
      if (known === document) continue
      if (known === undefined || document === undefined || !standsAt(known, document)) return undefined
      changed.push({ source, document })
    }
  }
  return changed
}

function isLike(before: SourceSnapshot, after: SourceSnapshot | undefined): boolean {
  return (
    before.source === after?.source &&
    before.ready === after.ready &&
    before.pods.length === after.pods.length &&
    sameData(before.unreadable, after.unreadable)
  )
}

function standsAt(before: PodDocument, after: PodDocument): boolean {
  return before.place.path === after.place.path && podKey(before.pod.metadata) === podKey(after.pod.metadata)
}
