import type { ObjectDocument, PodDocument, Problem, SourceName } from '../../pod/objects/document.ts'
import { documentKey } from '../../pod/objects/document.ts'
import type { PodKey } from '../../pod/values/ids.ts'
import type { ObjectKey } from '../../pod/objects/local-object.ts'

/** A document and the source that gave it. */
export interface SourcedDocument<Document> {
  readonly document: Document
  readonly source: SourceName
}

/**
 * The holder of a name, a pod's (PodKey) or another object's (ObjectKey); without a path, any document of that source.
 * @param asking the source of the competing document: its own holder comes first
 */
export type Incumbent = (
  key: PodKey | ObjectKey,
  asking: SourceName,
) => { readonly source: SourceName; readonly path?: string | undefined } | undefined

export interface RivalRules<Document> {
  /** The identity that two documents can't share. */
  readonly identity: (given: SourcedDocument<Document>) => string
  /** Whether the order of the sources decides, rather than which came first. */
  readonly isRankedBySource?: (given: SourcedDocument<Document>) => boolean
  readonly incumbent: Incumbent
}

/**
 * Of two documents for one identity the incumbent stays, else the first source, and in it the first path; the other is
 * an error that names both.
 * @param given in the order of the sources, and in each of the paths
 */
export function settleRivals<Document extends PodDocument | ObjectDocument>(
  given: readonly SourcedDocument<Document>[],
  { identity, incumbent, isRankedBySource = () => false }: RivalRules<Document>,
): { readonly settled: readonly SourcedDocument<Document>[]; readonly problems: readonly Problem[] } {
  const settled = new Map<string, SourcedDocument<Document>>()
  const problems: Problem[] = []
  for (const challenger of given) {
    const contested = identity(challenger)
    const rival = settled.get(contested)
    if (rival === undefined) {
      settled.set(contested, challenger)
      continue
    }
    const isRanked = isRankedBySource(challenger) && challenger.source !== rival.source
    const challengerHolds = !isRanked && holds(challenger, incumbent) && !holds(rival, incumbent)
    const [stays, goes] = challengerHolds ? [challenger, rival] : [rival, challenger]
    settled.set(contested, stays)
    const key = documentKey(goes.document)
    problems.push(
      rivalProblem({
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

/** The problem of a document that isn't followed, because another one gives its object. */
export function rivalProblem({
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

function holds(
  { source, document }: SourcedDocument<PodDocument | ObjectDocument>,
  incumbent: Incumbent,
): boolean {
  const holder = incumbent(documentKey(document), source)
  return holder?.source === source && (holder.path === undefined || holder.path === document.place.path)
}
