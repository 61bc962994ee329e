import { expect, it } from 'vitest'
import { mergePods, selectChangedPods } from '../../../../src/decide/sources/merge-snapshots.ts'
import type { PodDocument, SourceName, SourceSnapshot } from '../../../../src/pod/objects/document.ts'
import { podFromManifest } from '../../../../src/pod/schema/default-pod.ts'
import { podKey } from '../../../../src/pod/values/ids.ts'
import { pick, seededRandom } from '../../../support/seeded-random.ts'

function document(name: string, path = `${name}.yaml`): PodDocument {
  const manifest = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: { containers: [{ name: 'main', image: 'busybox' }] },
  }
  return { pod: podFromManifest(manifest), manifest, place: { path } }
}

function snapshot(source: SourceName, pods: readonly PodDocument[], ready = true): SourceSnapshot {
  return { source, location: source, ready, pods, objects: [], problems: [] }
}

it('what the changed pods make of the last merge is what a merge makes of all', () => {
  const random = seededRandom(18)
  const names = ['a', 'b', 'c', 'd', 'e']
  const draw = (): PodDocument[] =>
    names
      .filter(() => random() < 0.6)
      .map((name) => document(name, random() < 0.1 ? 'other.yaml' : undefined))
  let known = 0
  for (let round = 0; round < 3000; round += 1) {
    const before = [snapshot('file', draw()), snapshot('http', draw())]
    const after = before.map(({ source, pods }) => {
      const kind = random()
      if (kind < 0.2) return snapshot(source, draw())
      if (kind < 0.3) return snapshot(source, pods.toReversed())
      if (kind < 0.4) return snapshot(source, pods, false)
      const changed = pods.map((each) => (random() < 0.3 ? document(pick(random, names)) : each))
      const same = pods.map((each) =>
        random() < 0.3 ? document(each.pod.metadata.name, each.place.path) : each,
      )
      return snapshot(source, kind < 0.5 ? changed : same)
    })
    const merged = mergePods(before, () => undefined)
    if (merged.problems.length > 0) continue
    const changed = selectChangedPods(before, after)
    if (changed === undefined) continue
    known += 1
    const wanted = new Map(merged.wanted)
    for (const sourced of changed) wanted.set(podKey(sourced.document.pod.metadata), sourced)
    const whole = mergePods(after, () => undefined)
    expect(whole.problems).toEqual([])
    expect([...wanted].map(([key, { source }]) => [key, source])).toEqual(
      [...whole.wanted].map(([key, { source }]) => [key, source]),
    )
    for (const [key, { document: one }] of whole.wanted) expect(wanted.get(key)?.document).toBe(one)
  }
  expect(known).toBeGreaterThan(100)
})

it.each<[string, readonly SourceSnapshot[]]>([
  ['a pod comes', [snapshot('file', [document('a'), document('b')])]],
  ['a pod goes', [snapshot('file', [])]],
  ['another pod has its place', [snapshot('file', [document('b', 'a.yaml')])]],
  ['it stands elsewhere', [snapshot('file', [document('a', 'b.yaml')])]],
  ['a source comes', [snapshot('file', [document('a')]), snapshot('http', [])]],
  ['a source isn’t ready any more', [snapshot('file', [document('a')], false)]],
  ['a file can’t be read', [{ ...snapshot('file', [document('a')]), unreadable: ['a.yaml'] }]],
])('more may have changed where %s', (_what, after) => {
  expect(selectChangedPods([snapshot('file', [document('a')])], after)).toBeUndefined()
})
