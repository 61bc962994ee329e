import { basename } from 'node:path'
import { rivalProblem } from '../../decide/sources/merge-snapshots.ts'
import type { Problem } from '../../pod/objects/document.ts'
import { uidKeyOf } from './followed-objects.ts'
import type { KeptManifest } from './kept-document.ts'
import { fileNameOf, keyOf } from './object-file.ts'

/** An object that podd has followed, and its file. */
export type Incumbent = Pick<KeptManifest, 'namespace' | 'name' | 'path'>

/**
 * Objects in the order in which they are taken, where several have one name or one UID: first those that podd has
 * followed from their files, then those that it has followed from others, so that what runs keeps running; then those
 * whose files bear the names that podd gives them, then by the names of the files.
 * @param found in the order of the names of their files
 * @param findIncumbent the object with the UID of this one that podd has followed, as far as is known
 */
export async function inOrderOfClaim<Found extends { readonly kept: KeptManifest }>(
  found: readonly Found[],
  findIncumbent: (kept: KeptManifest) => Promise<Incumbent | undefined>,
): Promise<readonly Found[]> {
  const counts = new Map<string, number>()
  const keys = ({ kept }: Found): readonly string[] => [`name ${keyOf(kept)}`, `uid ${uidKeyOf(kept)}`]
  for (const key of found.flatMap((each) => keys(each))) counts.set(key, (counts.get(key) ?? 0) + 1)
  const rank = async (each: Found): Promise<number> => {
    const { kept } = each
    if (!keys(each).some((key) => (counts.get(key) ?? 0) > 1)) return 0
    const incumbent = await findIncumbent(kept)
    if (incumbent?.namespace === kept.namespace && incumbent.name === kept.name)
      return incumbent.path === kept.path ? 0 : 1
    return fileNameOf(kept) === basename(kept.path) ? 2 : 3
  }
  const ranked: { readonly each: Found; readonly rank: number }[] = []
  for (const each of found) ranked.push({ each, rank: await rank(each) })
  return ranked.toSorted((a, b) => a.rank - b.rank).map(({ each }) => each)
}

/**
 * Why the object in a file isn't followed.
 * @param rival the one that is; undefined once it was deleted over the API
 */
export function duplicateProblem(kept: KeptManifest, rival: KeptManifest | undefined): Problem {
  const place = { path: kept.path }
  const object = nameOf(kept)
  const what = wordsFor(kept)
  if (rival === undefined)
    return {
      severity: 'error',
      place,
      object,
      message: `${what} stood in another file too, and was deleted over the API; this one is not followed`,
      hint: 'Remove this file. podd follows it when it is changed, and when podd is started again.',
    }
  const hint =
    'Remove one of the two files. To have both objects, give this one another metadata.name and metadata.uid.'
  if (keyOf(kept) === keyOf(rival)) return rivalProblem({ place, object, what, stays: rival.path, hint })
  return {
    severity: 'error',
    place,
    object,
    message: `${what} has the metadata.uid of ${wordsFor(rival)} in ${rival.path}, which is followed; this one is not`,
    hint,
  }
}

function nameOf({ namespace, name }: KeptManifest): string {
  return namespace === '' ? name : `${namespace}/${name}`
}

function wordsFor(kept: KeptManifest): string {
  return `${kept.kind === 'Pod' ? 'pod' : kept.kind} ${nameOf(kept)}`
}
