import type { ObjectDocument, PodDocument, SourceDocument } from '../../pod/objects/document.ts'
import { isObjectDocument, isPodDocument } from '../../pod/objects/document.ts'

/** Documents in their order, and the same by what they are. */
export interface DocumentLists {
  readonly all: readonly SourceDocument[]
  readonly pods: readonly PodDocument[]
  readonly objects: readonly ObjectDocument[]
}

export function listDocuments(all: readonly SourceDocument[]): DocumentLists {
  return {
    all,
    pods: all.filter((document) => isPodDocument(document)),
    objects: all.filter((document) => isObjectDocument(document)),
  }
}

/**
 * The lists with `after` in the place of `before`, which stand in them one after the other, without a look at the others;
 * undefined where these are not as many, or of other kinds.
 */
export function replaceDocuments(
  lists: DocumentLists,
  before: readonly SourceDocument[],
  after: readonly SourceDocument[],
): DocumentLists | undefined {
  const [was, is] = [listDocuments(before), listDocuments(after)]
  const all = replaceRun(lists.all, was.all, is.all)
  const pods = replaceRun(lists.pods, was.pods, is.pods)
  const objects = replaceRun(lists.objects, was.objects, is.objects)
  return all === undefined || pods === undefined || objects === undefined ? undefined : { all, pods, objects }
}

function replaceRun<T>(
  list: readonly T[],
  before: readonly T[],
  after: readonly T[],
): readonly T[] | undefined {
  if (before.length !== after.length) return undefined
  const [first] = before
  if (first === undefined) return list
  const at = list.indexOf(first)
  return at === -1 ? undefined : list.toSpliced(at, after.length, ...after)
}
