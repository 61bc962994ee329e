import type { PodDocument, Problem, SourceSnapshot } from '../../pod/objects/document.ts'
import type { PodKey } from '../../pod/values/ids.ts'
import { podKey } from '../../pod/values/ids.ts'
import type { ObjectRules, SourcedObject } from './merge-objects.ts'
import { isRankedBySource, objectIdentity, selectAllowedObjects } from './merge-objects.ts'
import type { Incumbent, SourcedDocument } from './settle-rivals.ts'
import { settleRivals } from './settle-rivals.ts'

export interface MergedSnapshots {
  readonly wanted: ReadonlyMap<PodKey, SourcedDocument<PodDocument>>
  /** Those that are followed, in the order of the sources; which source sees which is told by selectVisibleObjects. */
  readonly objects: readonly SourcedObject[]
  readonly problems: readonly Problem[]
}

/**
 * All sources together. Of two documents for one name the incumbent stays (where the recorded pod came
 * from), else the first source, and in it the first path; the other is an error that names both. What a
 * source may not give is an error too.
 */
export function mergeSnapshots(
  snapshots: readonly SourceSnapshot[],
  incumbent: Incumbent,
  rules: ObjectRules,
): MergedSnapshots {
  const podDocuments = snapshots.flatMap(({ source, pods }) => pods.map((document) => ({ source, document })))
  const objectDocuments = snapshots.flatMap(({ source, objects }) =>
    objects.map((document) => ({ source, document })),
  )
  const { allowed, problems: refused } = selectAllowedObjects(objectDocuments, rules)
  const pods = settleRivals(podDocuments, {
    identity: ({ document }) => podKey(document.pod.metadata),
    incumbent,
  })
  const objects = settleRivals(allowed, { identity: objectIdentity, isRankedBySource, incumbent })
  return {
    wanted: new Map(pods.settled.map((sourced) => [podKey(sourced.document.pod.metadata), sourced])),
    objects: objects.settled,
    problems: [
      ...snapshots.flatMap((snapshot) => snapshot.problems),
      ...refused,
      ...pods.problems,
      ...objects.problems,
    ],
  }
}
