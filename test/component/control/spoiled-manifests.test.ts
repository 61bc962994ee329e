import { beforeEach, expect, it } from 'vitest'
import { decodeDocuments } from '../../../src/pod/decode/decode-documents.ts'
import { isPodDocument } from '../../../src/pod/objects/document.ts'
import type { SourceDocument } from '../../../src/pod/objects/document.ts'
import { mergeLastGood } from '../../../src/sources/source.ts'
import { spoiledText } from '../../judge/fuzzed-text.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { PodRig } from './pod-rig.ts'

const rounds = 150
const names = ['first', 'second', 'third']
const good = names
  .map(
    (name) => `apiVersion: v1
kind: Pod
metadata:
  name: ${name}
  labels: {app: web}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: app:1
    args: ["--name=${name}", "--verbose"]
    env:
    - name: PLACE
      value: "here"
    resources:
      limits: {cpu: 100m, memory: 64Mi}
`,
  )
  .join('---\n')

let rig: PodRig
beforeEach(async () => {
  rig = new PodRig()
  await rig.start()
})

/** What the one file holds, as a source gives it. */
async function offer(before: readonly SourceDocument[], text: Uint8Array | string) {
  const result = await decodeDocuments(text, { path: '/file/pods.yaml' })
  const documents = mergeLastGood(before, result)
  const pods = documents.filter((document) => isPodDocument(document))
  rig.system.offerSnapshot({
    source: 'file',
    location: '/file',
    ready: true,
    pods,
    objects: [],
    problems: [],
  })
  await rig.clock.advance(60_000)
  return { result, documents }
}

it('a good file that is cut off, or changed in one place, ends no running pod that it does not leave out, and gives none by halves', async () => {
  const random = seededRandom(11)
  const { documents: before } = await offer([], good)
  const count = { bad: 0, good: 0 }
  for (let round = 0; round < rounds; round += 1) {
    expect(rig.running().toSorted()).toEqual(names.map((name) => `${name}/main`))
    const uids = new Map(names.map((name) => [name, rig.pod(name).metadata.uid]))
    const text = spoiledText(random, good)
    const { result, documents } = await offer(before, text)
    const isBad = result.problems.some(({ severity }) => severity === 'error')
    count[isBad ? 'bad' : 'good'] += 1
    // What was bad is as it was, to the byte; the same containers run.
    const kept = before.filter((document) => documents.includes(document))
    const faulty = result.problems.flatMap(({ severity, object }) =>
      severity === 'error' ? (object ?? []) : [],
    )
    const given = result.documents.filter((document) => isPodDocument(document))
    const halves = given.filter(({ pod }) =>
      faulty.includes(`${pod.metadata.namespace}/${pod.metadata.name}`),
    )
    const lost = isBad ? before.filter((document) => !documents.some((next) => sameName(next, document))) : []
    expect({ text: text.toString(), lost, halves }).toEqual({ text: text.toString(), lost: [], halves: [] })
    for (const { name } of kept.flatMap((document) =>
      isPodDocument(document) ? [document.pod.metadata] : [],
    )) {
      expect([name, rig.pod(name).metadata.uid]).toEqual([name, uids.get(name)])
      expect(rig.running()).toContain(`${name}/main`)
    }
    await offer(before, good)
  }
  expect(count.bad).toBeGreaterThan(rounds / 4)
  expect(count.good).toBeGreaterThan(0)
  expect(rig.failures).toEqual([])
})

function sameName(a: SourceDocument, b: SourceDocument): boolean {
  return isPodDocument(a) && isPodDocument(b) && a.pod.metadata.name === b.pod.metadata.name
}
