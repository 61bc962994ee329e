import { expect, it } from 'vitest'
import { podFromManifest } from '../../../src/pod/schema/default-pod.ts'
import type { SourceDocument } from '../../../src/pod/objects/document.ts'
import { objectFromManifest } from '../../../src/pod/objects/local-object.ts'
import { listDocuments, replaceDocuments } from '../../../src/sources/directory/taken-files.ts'
import { seededRandom } from '../../support/seeded-random.ts'

function document(kind: 'Pod' | 'ConfigMap'): SourceDocument {
  const place = { path: 'a.yaml' }
  const metadata = { name: 'a' }
  const spec = { containers: [{ name: 'main', image: 'busybox' }] }
  if (kind === 'Pod') {
    const manifest = { apiVersion: 'v1', kind, metadata, spec }
    return { pod: podFromManifest(manifest), manifest, place }
  }
  const manifest = { apiVersion: 'v1', kind, metadata }
  return { object: objectFromManifest(manifest), manifest, place }
}

it('lists in which a file’s documents are replaced are those of all files', () => {
  const random = seededRandom(18)
  const draw = (): SourceDocument[] =>
    Array.from({ length: Math.floor(random() * 4) }, () => document(random() < 0.5 ? 'Pod' : 'ConfigMap'))
  let known = 0
  for (let round = 0; round < 1000; round += 1) {
    const files = [draw(), draw(), draw()]
    const at = Math.floor(random() * 3)
    const before = files[at] ?? []
    const after =
      random() < 0.5 ? before.map((each) => document('pod' in each ? 'Pod' : 'ConfigMap')) : draw()
    const replaced = replaceDocuments(listDocuments(files.flat()), before, after)
    if (replaced === undefined) continue
    known += 1
    const whole = listDocuments(files.with(at, after).flat())
    for (const list of ['all', 'pods', 'objects'] as const) {
      expect(replaced[list]).toHaveLength(whole[list].length)
      for (const [index, each] of whole[list].entries()) expect(replaced[list][index]).toBe(each)
    }
  }
  expect(known).toBeGreaterThan(100)
})
