import type { ObjectDocument, PodDocument, Problem, SourceName, SourceSnapshot } from '../pod/document.ts'
import { documentKey } from '../pod/document.ts'
import type { PodKey } from '../pod/ids.ts'
import { podKey } from '../pod/ids.ts'
import type { ObjectKey } from '../pod/local-object.ts'

/** A document and the source that gave it. */
export interface SourcedDocument<Document> {
  readonly document: Document
  readonly source: SourceName
}

export interface MergedSnapshots {
  readonly wanted: ReadonlyMap<PodKey, SourcedDocument<PodDocument>>
  readonly objects: ReadonlyMap<ObjectKey, SourcedDocument<ObjectDocument>>
  readonly problems: readonly Problem[]
}

/** Who holds a name, a pod's (PodKey) or another object's (ObjectKey). */
export type Incumbent = (
  key: PodKey | ObjectKey,
) => { readonly source: SourceName; readonly path: string } | undefined

/**
 * All sources together. Of two documents for one name the incumbent stays (where the recorded pod came
 * from), else the first source, and in it the first path; the other is an error that names both.
 */
export function mergeSnapshots(snapshots: readonly SourceSnapshot[], incumbent: Incumbent): MergedSnapshots {
  const problems: Problem[] = snapshots.flatMap((snapshot) => snapshot.problems)
  const all = { incumbent, problems }
  const pods = snapshots.flatMap(({ source, pods }) => pods.map((document) => ({ source, document })))
  const objects = snapshots.flatMap(({ source, objects }) =>
    objects.map((document) => ({ source, document })),
  )
  return {
    wanted: mergeDocuments(pods, (document) => podKey(document.pod.metadata), all),
    objects: mergeDocuments(objects, documentKey, all),
    problems,
  }
}

function mergeDocuments<Document extends PodDocument | ObjectDocument>(
  given: readonly SourcedDocument<Document>[],
  keyOf: (document: Document) => string,
  { incumbent, problems }: { readonly incumbent: Incumbent; readonly problems: Problem[] },
): ReadonlyMap<string, SourcedDocument<Document>> {
  const wanted = new Map<string, SourcedDocument<Document>>()
  for (const { source, document } of given) {
    const key = keyOf(document)
    const rival = wanted.get(key)
    if (rival === undefined) {
      wanted.set(key, { document, source })
      continue
    }
    const holder = incumbent(key)
    const challengerHolds = holder?.source === source && holder.path === document.place.path
    const [stays, goes] = challengerHolds ? [document, rival.document] : [rival.document, document]
    if (challengerHolds) wanted.set(key, { document, source })
    const what = 'pod' in document ? `pod ${key}` : key
    problems.push({
      severity: 'error',
      place: goes.place,
      object: key,
      message: `${what} stands in ${stays.place.path} too, which is followed; this one is not`,
      hint: 'Remove one of the two, or give it another name.',
    })
  }
  return wanted
}
