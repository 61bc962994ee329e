import type { PodDocument, Problem, SourceSnapshot } from '../../pod/objects/document.ts'
import type { PodKey } from '../../pod/values/ids.ts'
import { podKey } from '../../pod/values/ids.ts'
import type { ObjectRules, SourcedObject } from './merge-objects.ts'
import { isRankedBySource, objectIdentity, selectAllowedObjects } from './merge-objects.ts'
import type { Incumbent, SourcedDocument } from './settle-rivals.ts'
import { settleRivals } from './settle-rivals.ts'

export interface MergedSnapshots {
  readonly wanted: ReadonlyMap<PodKey, SourcedDocument<PodDocument>>
  /** The followed objects, in the order of the sources; selectVisibleObjects tells which source sees which. */
  readonly objects: readonly SourcedObject[]
  readonly problems: readonly Problem[]
}

/**
 * Merges the snapshots of all sources. Of two documents for one name the incumbent stays (where the recorded pod came
 * from), else the first source, and in it the first path; the other is an error that names both. A document that its
 * source may not give is an error too.
 */
export function mergeSnapshots(
  snapshots: readonly SourceSnapshot[],
  incumbent: Incumbent,
  rules: ObjectRules,
): MergedSnapshots {
  const pods = mergePods(snapshots, incumbent)
  const objects = mergeObjects(snapshots, incumbent, rules)
  return {
    wanted: pods.wanted,
    objects: objects.objects,
    problems: [...snapshots.flatMap(({ problems }) => problems), ...pods.problems, ...objects.problems],
  }
}

/** The part of `mergeSnapshots` that is about pods. */
export function mergePods(
  snapshots: readonly SourceSnapshot[],
  incumbent: Incumbent,
): Pick<MergedSnapshots, 'wanted' | 'problems'> {
  const given = snapshots.flatMap(({ source, pods }) => pods.map((document) => ({ source, document })))
  const pods = settleRivals(given, {
    identity: ({ document }) => podKey(document.pod.metadata),
    incumbent,
  })
  return {
    wanted: new Map(pods.settled.map((sourced) => [podKey(sourced.document.pod.metadata), sourced])),
    problems: pods.problems,
  }
}

/** The part of `mergeSnapshots` that is about the objects that pods refer to. */
export function mergeObjects(
  snapshots: readonly SourceSnapshot[],
  incumbent: Incumbent,
  rules: ObjectRules,
): Pick<MergedSnapshots, 'objects' | 'problems'> {
  const given = snapshots.flatMap(({ source, objects }) => objects.map((document) => ({ source, document })))
  const { allowed, problems } = selectAllowedObjects(given, rules)
  const objects = settleRivals(allowed, { identity: objectIdentity, isRankedBySource, incumbent })
  return { objects: objects.settled, problems: [...problems, ...objects.problems] }
}
