import { expect, it } from 'vitest'
import { jsonPatch, mergePatch, PatchError, strategicMerge } from '../../../../src/decide/writing/patch.ts'

it.each([
  [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
  [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
  [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
  [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
  [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
  [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
  [{ e: null }, { a: 1 }, { e: null, a: 1 }],
  [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
])('merges %j with %j (RFC 7386)', (current, patch, result) => {
  expect(mergePatch(current, patch)).toEqual(result)
})

it.each([
  [{ a: 1 }, [{ op: 'add', path: '/b', value: 2 }], { a: 1, b: 2 }],
  [{ a: [1, 3] }, [{ op: 'add', path: '/a/1', value: 2 }], { a: [1, 2, 3] }],
  [{ a: [1] }, [{ op: 'add', path: '/a/-', value: 2 }], { a: [1, 2] }],
  [{ a: 1, b: 2 }, [{ op: 'remove', path: '/a' }], { b: 2 }],
  [{ a: [1, 2] }, [{ op: 'remove', path: '/a/0' }], { a: [2] }],
  [{ a: [1, 2] }, [{ op: 'remove', path: '/a/1' }], { a: [1] }],
  [{ a: [1] }, [{ op: 'add', path: '/a/1', value: 2 }], { a: [1, 2] }],
  [{ a: [1, 2] }, [{ op: 'replace', path: '/a/1', value: null }], { a: [1, null] }],
  [{ a: [{ b: 1 }, { b: 2 }] }, [{ op: 'replace', path: '/a/1/b', value: 3 }], { a: [{ b: 1 }, { b: 3 }] }],
  [{ a: [{ b: 1 }, { b: 2 }] }, [{ op: 'remove', path: '/a/0/b' }], { a: [{}, { b: 2 }] }],
  [{ a: [1, 2] }, [{ op: 'copy', from: '/a/1', path: '/b' }], { a: [1, 2], b: 2 }],
  [{ a: { b: 1 } }, [{ op: 'replace', path: '/a/b', value: null }], { a: { b: null } }],
  [{ a: { b: 1 } }, [{ op: 'move', from: '/a/b', path: '/c' }], { a: {}, c: 1 }],
  [{ a: 1 }, [{ op: 'copy', from: '/a', path: '/b' }], { a: 1, b: 1 }],
  [
    { 'x/y': 1, '~': 2 },
    [
      { op: 'remove', path: '/x~1y' },
      { op: 'test', path: '/~0', value: 2 },
    ],
    { '~': 2 },
  ],
])('patches %j with %j (RFC 6902)', (current, patch, result) => {
  expect(jsonPatch(current, patch)).toEqual(result)
})

it.each([
  [{ op: 'test', path: '/a', value: 2 }],
  [{ op: 'remove', path: '/b' }],
  [{ op: 'replace', path: '/b', value: 1 }],
  [{ op: 'add', path: '/b/c', value: 1 }],
  [{ op: 'add', path: '/list/4', value: 1 }],
  [{ op: 'add', path: '/list/2', value: 1 }],
  [{ op: 'replace', path: '/list/1', value: 1 }],
  [{ op: 'remove', path: '/list/1' }],
  [{ op: 'copy', from: '/list/1', path: '/b' }],
  [{ op: 'copy', from: '/toString', path: '/b' }],
  [{ op: 'replace', path: '/a/b', value: 1 }],
  [{ op: 'add', path: '/list/01', value: 1 }],
  [{ op: 'add', path: 'a', value: 1 }],
  [{ op: 'remove', path: '' }],
  [{ op: 'add', path: '/c' }],
  [{ op: 'burn', path: '/a' }],
  [7],
])('refuses the operation %j', (operation) => {
  expect(() => jsonPatch({ a: 1, list: [0] }, [operation])).toThrow(PatchError)
})

it('copies no more than an API server does, however often a copy is copied', () => {
  const doubling = Array.from({ length: 30 }, (_, index) => ({ op: 'copy', from: '', path: `/c${index}` }))
  expect(() => jsonPatch({ text: 'x'.repeat(1000) }, doubling)).toThrow('may copy 3145728 bytes at most')
})

it('takes as many operations, and as many copied bytes, as an API server does', () => {
  const tests = (count: number) => Array.from({ length: count }, () => ({ op: 'test', path: '/a', value: 1 }))
  expect(jsonPatch({ a: 1 }, tests(10_000))).toEqual({ a: 1 })
  expect(() => jsonPatch({ a: 1 }, tests(10_001))).toThrow('may have 10000 operations, not 10001')
  const copy = (length: number) =>
    jsonPatch({ a: 'x'.repeat(length) }, [{ op: 'copy', from: '/a', path: '/b' }])
  // With the quotes.
  expect(copy(3 * 1024 * 1024 - 2)).toHaveProperty('b')
  expect(() => copy(3 * 1024 * 1024 - 1)).toThrow('may copy 3145728 bytes at most')
})

const containers = [
  { name: 'a', image: 'one' },
  { name: 'b', image: 'two' },
]

it.each([
  [
    'one item by its key',
    { containers: [{ name: 'b', image: 'x' }] },
    [containers[0], { name: 'b', image: 'x' }],
  ],
  ['a new item', { containers: [{ name: 'c' }] }, [...containers, { name: 'c' }]],
  ['an item away', { containers: [{ name: 'a', $patch: 'delete' }] }, [containers[1]]],
  ['the whole list', { containers: [{ $patch: 'replace' }, { name: 'c' }] }, [{ name: 'c' }]],
  [
    'an order',
    {
      '$setElementOrder/containers': [{ name: 'b' }, { name: 'a' }],
      containers: [{ name: 'a', image: 'x' }],
    },
    [containers[1], { name: 'a', image: 'x' }],
  ],
])('merges %s into a list of objects', (_, patch, result) => {
  expect(strategicMerge({ containers }, patch)).toEqual({ containers: result })
})

it.each([
  ['deletes with null', { a: { b: 1, c: 2 } }, { a: { b: null } }, { a: { c: 2 } }],
  ['replaces an object', { a: { b: 1 } }, { a: { $patch: 'replace', c: 1 } }, { a: { c: 1 } }],
  ['deletes an object', { a: { b: 1 }, c: 1 }, { a: { $patch: 'delete' } }, { c: 1 }],
  ['replaces lists of values', { args: ['a', 'b'] }, { args: ['c'] }, { args: ['c'] }],
  [
    'replaces atomic lists of objects',
    { tolerations: [{ key: 'a' }] },
    { tolerations: [] },
    { tolerations: [] },
  ],
  ['adds to sets', { finalizers: ['a'] }, { finalizers: ['b', 'a'] }, { finalizers: ['a', 'b'] }],
  [
    'deletes from sets',
    { finalizers: ['a', 'b'] },
    { '$deleteFromPrimitiveList/finalizers': ['a'] },
    { finalizers: ['b'] },
  ],
  [
    'keeps the keys that are named',
    { volumes: [{ name: 'v', emptyDir: {} }] },
    { volumes: [{ name: 'v', $retainKeys: ['name', 'hostPath'], hostPath: { path: '/' } }] },
    { volumes: [{ name: 'v', hostPath: { path: '/' } }] },
  ],
  [
    'merges ports by their number',
    { ports: [{ containerPort: 80, name: 'a' }] },
    { ports: [{ containerPort: 80, name: 'b' }, { containerPort: 81 }] },
    { ports: [{ containerPort: 80, name: 'b' }, { containerPort: 81 }] },
  ],
])('%s', (_, current, patch, result) => {
  expect(strategicMerge(current, patch)).toEqual(result)
})

it('refuses an item without the key that it is merged by, and unknown directives', () => {
  expect(() => strategicMerge({ containers }, { containers: [{ image: 'x' }] })).toThrow(PatchError)
  expect(() => strategicMerge({}, { a: { $patch: 'burn' } })).toThrow(PatchError)
})

it.each([
  [
    'a set gets what it lacks',
    { metadata: { finalizers: ['a/x', 'b/x'] } },
    { metadata: { finalizers: ['b/x', 'c/x'] } },
    { metadata: { finalizers: ['a/x', 'b/x', 'c/x'] } },
  ],
  [
    'values are removed from a list of them',
    { metadata: { finalizers: ['a/x', 'b/x', 'c/x'] } },
    { metadata: { '$deleteFromPrimitiveList/finalizers': ['a/x', 'c/x'] } },
    { metadata: { finalizers: ['b/x'] } },
  ],
  [
    'nothing is removed from what is no list',
    { metadata: { finalizers: 'a/x' } },
    { metadata: { '$deleteFromPrimitiveList/finalizers': ['a/x'] } },
    { metadata: { finalizers: 'a/x' } },
  ],
  [
    'a list of which an item is no object is replaced as a whole',
    { spec: { containers: [{ name: 'a' }] } },
    { spec: { containers: [{ name: 'b' }, 'c'] } },
    { spec: { containers: [{ name: 'b' }, 'c'] } },
  ],
  [
    'what is no list is in no order',
    { spec: { containers: 'none' } },
    { spec: { '$setElementOrder/containers': [{ name: 'a' }] } },
    { spec: { containers: 'none' } },
  ],
])('where %s', (_what, current, patch, result) => {
  expect(strategicMerge(current, patch)).toEqual(result)
})

it('merges the ports of a Service by their numbers, and those of a container by its own', () => {
  const ports = [
    { port: 80, name: 'http' },
    { port: 443, name: 'https' },
  ]
  const patch = {
    spec: {
      ports: [
        { port: 443, targetPort: 8443 },
        { port: 80, $patch: 'delete' },
      ],
    },
  }
  expect(strategicMerge({ spec: { ports } }, patch)).toEqual({
    spec: { ports: [{ port: 443, name: 'https', targetPort: 8443 }] },
  })
  const containers = [{ name: 'a', ports: [{ containerPort: 80 }] }]
  expect(
    strategicMerge(
      { containers },
      { containers: [{ name: 'a', ports: [{ containerPort: 80, name: 'http' }] }] },
    ),
  ).toEqual({ containers: [{ name: 'a', ports: [{ containerPort: 80, name: 'http' }] }] })
})
