import { expect, it } from 'vitest'
import type { JsonObject } from '../../../src/base/json.ts'
import { presentWritten } from '../../../src/control/serving/written-objects.ts'
import { podObject } from '../../support/pod-objects.ts'

const spec = { containers: [{ name: 'main', image: 'web:1' }] }
const changed = { containers: [{ name: 'main', image: 'web:2' }] }
const found = { nodeName: 'here', priority: 7, overhead: { cpu: '1m' } }
const deleted = { deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 30 }

it.each<[string, { kept?: JsonObject; taken?: JsonObject }, number]>([
  ['as its worker knows it', {}, 3],
  ['with a default that is kept alone', { kept: { spec: { ...spec, dnsPolicy: 'Default' } } }, 3],
  ['changed since', { taken: { spec: changed } }, 4],
  ['deleted since', { kept: { metadata: deleted } }, 4],
  ['changed and deleted since', { kept: { metadata: deleted }, taken: { spec: changed } }, 5],
])('shows the generation of a pod %s', (_what, { kept = {}, taken = { spec } }, generation) => {
  const object = podObject({ spec: { ...spec, ...found } })
  const known = { ...object, metadata: { ...object.metadata, generation: 3 } }
  const shown = presentWritten(known, { spec, ...kept }, taken)
  expect(shown.metadata.generation).toBe(generation)
  expect(shown.spec).toMatchObject(found)
})

it('counts a deletion once', () => {
  const object = podObject({})
  const { deletionTimestamp } = deleted
  const known = { ...object, metadata: { ...object.metadata, generation: 3, deletionTimestamp } }
  expect(presentWritten(known, { metadata: deleted }, undefined).metadata.generation).toBe(3)
})
