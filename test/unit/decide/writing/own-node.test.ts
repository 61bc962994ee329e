import { describe, expect, it } from 'vitest'
import type { Json, JsonObject } from '../../../../src/base/json.ts'
import { ownNodeOf, updateNode } from '../../../../src/decide/writing/own-node.ts'

const found = { 'kubernetes.io/os': 'linux' }
const node = (
  metadata: { readonly labels?: JsonObject; readonly annotations?: JsonObject } = {},
  capacity: JsonObject = {},
): JsonObject => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: {
    name: 'host',
    uid: 'u',
    creationTimestamp: 'then',
    labels: { ...found, ...metadata.labels },
    annotations: { ...metadata.annotations },
  },
  spec: { podCIDR: '10.0.0.0/24' },
  status: { capacity: { cpu: '2', ...capacity } },
})
const kept = (metadata: JsonObject, capacity?: JsonObject): JsonObject => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'host', uid: 'u', creationTimestamp: 'then', ...metadata },
  ...(capacity && { status: { capacity } }),
})
const before = kept({ labels: { tier: 'edge' }, annotations: { note: 'x' } }, { 'example.com/fpga': '2' })
const shown = node({ labels: { tier: 'edge' }, annotations: { note: 'x' } }, { 'example.com/fpga': '2' })

describe('updateNode', () => {
  it.each<[string, 'object' | 'status', JsonObject | undefined, JsonObject, JsonObject | undefined]>([
    ['nothing of what podd found itself', 'object', undefined, node(), undefined],
    ['a label', 'object', undefined, node({ labels: { tier: 'edge' } }), kept({ labels: { tier: 'edge' } })],
    [
      'an annotation',
      'object',
      undefined,
      node({ annotations: { note: 'x' } }),
      kept({ annotations: { note: 'x' } }),
    ],
    [
      'another value for a label that podd found itself',
      'object',
      undefined,
      node({ labels: { 'kubernetes.io/os': 'other' } }),
      kept({ labels: { 'kubernetes.io/os': 'other' } }),
    ],
    [
      'no capacity with the object, and that of before',
      'object',
      before,
      node({}, { 'example.com/fpga': '8' }),
      kept({}, { 'example.com/fpga': '2' }),
    ],
    [
      'an extended resource with the status, and none of the others',
      'status',
      undefined,
      node({ labels: { tier: 'edge' } }, { 'example.com/fpga': 4, memory: '1Gi' }),
      kept({}, { 'example.com/fpga': '4' }),
    ],
    [
      'labels and annotations of before with the status',
      'status',
      before,
      node(),
      kept({ labels: { tier: 'edge' }, annotations: { note: 'x' } }),
    ],
  ])('keeps %s', (_what, scope, own, wanted, manifest) => {
    expect(updateNode(own, own === undefined ? node() : shown, wanted, scope)).toEqual({
      manifest,
      problems: [],
    })
  })

  it('keeps a label that a client has written although podd shows the same', () => {
    const labels = { 'kubernetes.io/os': 'linux' }
    const own = kept({ labels })
    expect(updateNode(own, node(), node(), 'object').manifest).toEqual(own)
  })

  it.each<[Json, readonly string[]]>([
    ['0', []],
    ['-1', ['must be greater than or equal to 0']],
    ['1500m', ['must be an integer']],
    ['many', ['must be a quantity']],
    [true, ['must be a quantity']],
  ])(
    'takes %j for the amount of an extended resource only where it is a whole one: %j',
    (amount, messages) => {
      const wanted = node({}, { 'example.com/fpga': amount })
      const { problems } = updateNode(undefined, node(), wanted, 'status')
      expect(problems.map(({ message }) => message.replace(/^.*: /u, ''))).toEqual(messages)
      expect(updateNode(undefined, node(), wanted, 'object').problems).toEqual([])
    },
  )

  it('refuses a label that is none and another spec, with the object alone', () => {
    const wanted = { ...node({ labels: { 'a b': 'x' } }), spec: {} }
    const { problems } = updateNode(undefined, node(), wanted, 'object')
    expect(problems.map(({ path }) => path.join('.'))).toEqual(['metadata.labels', 'spec'])
    expect(updateNode(undefined, node(), wanted, 'status').problems).toEqual([])
  })
})

describe('ownNodeOf', () => {
  it('is what a kept manifest says', () => {
    expect(ownNodeOf(undefined)).toEqual({ labels: {}, annotations: {}, capacity: {} })
    expect(ownNodeOf(before)).toEqual({
      labels: { tier: 'edge' },
      annotations: { note: 'x' },
      capacity: { 'example.com/fpga': '2' },
    })
  })
})
