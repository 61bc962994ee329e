import { describe, expect, it } from 'vitest'
import {
  conditionMessage,
  evictionMessage,
  rankForEviction,
} from '../../../../src/decide/node/judge-pressure.ts'
import type { EvictionCandidate } from '../../../../src/decide/node/judge-pressure.ts'

const mebibyte = 1024 ** 2

function pod(name: string, changes: Partial<EvictionCandidate>): EvictionCandidate {
  return {
    key: `default/${name}`,
    name,
    priority: 0,
    isCritical: false,
    used: {},
    requested: {},
    podLevelMemory: false,
    containers: [],
    ...changes,
  }
}

function memoryPod(name: string, used: number, requested: number, priority = 0): EvictionCandidate {
  return pod(name, {
    priority,
    used: { memory: used * mebibyte },
    requested: { memory: requested * mebibyte },
  })
}

describe('rankForEviction', () => {
  it.each([
    [
      'those over their requests first',
      [memoryPod('within', 90, 100), memoryPod('over', 20, 10)],
      'over within',
    ],
    // id: ranks-by-priority
    ['then by priority', [memoryPod('high', 90, 10, 5), memoryPod('low', 20, 10, 1)], 'low high'],
    [
      'over the requests before priority',
      [memoryPod('high', 90, 10, 5), memoryPod('low', 5, 10, 1)],
      'high low',
    ],
    ['then by how far over', [memoryPod('less', 90, 80), memoryPod('more', 50, 10)], 'more less'],
    ['the one that could not be measured', [memoryPod('known', 900, 0), pod('unknown', {})], 'unknown known'],
    ['by name at last', [memoryPod('b', 50, 10), memoryPod('a', 50, 10)], 'a b'],
  ])('%s', (_, candidates, order) => {
    expect(
      rankForEviction(candidates, 'memory')
        .map(({ name }) => name)
        .join(' '),
    ).toBe(order)
  })

  it('counts what a pod requests of ephemeral storage', () => {
    const asking = (name: string, usedMiB: number, requestedMiB: number) =>
      pod(name, {
        used: { 'ephemeral-storage': usedMiB * mebibyte },
        requested: { 'ephemeral-storage': requestedMiB * mebibyte },
      })
    const candidates = [asking('within', 90, 100), asking('less', 60, 55), asking('over', 20, 10)]
    expect(rankForEviction(candidates, 'ephemeral-storage').map(({ name }) => name)).toEqual([
      'over',
      'less',
      'within',
    ])
  })

  it.each([
    ['memory', 1],
    ['ephemeral-storage', 1024 ** 2],
    ['inodes', 100],
    ['pids', 1],
  ] as const)(
    'takes a pod that uses as much %s as is worth an eviction, and none that uses less',
    (resource, least) => {
      const candidates = [
        pod('least', { used: { [resource]: least } }),
        pod('less', { used: { [resource]: least - 1 } }),
      ]
      expect(rankForEviction(candidates, resource).map(({ name }) => name)).toEqual(['least'])
    },
  )

  it('does not count a pod that uses just what it requests as one that is over', () => {
    const candidates = [memoryPod('exact', 50, 50, 1), memoryPod('within', 10, 50, 0)]
    expect(rankForEviction(candidates, 'memory').map(({ name }) => name)).toEqual(['within', 'exact'])
    expect(rankForEviction(candidates.toReversed(), 'memory').map(({ name }) => name)).toEqual([
      'within',
      'exact',
    ])
  })

  it('never takes a critical pod', () => {
    expect(rankForEviction([pod('critical', { isCritical: true, used: { memory: 1e9 } })], 'memory')).toEqual(
      [],
    )
  })

  // id: ranks-by-processes
  it('ranks by processes for pids, whatever is requested', () => {
    const few = pod('few', { used: { pids: 3 }, priority: 1 })
    const many = pod('many', { used: { pids: 300 }, priority: 1 })
    const low = pod('low', { used: { pids: 2 }, priority: 0 })
    expect(rankForEviction([few, many, low], 'pids').map(({ name }) => name)).toEqual(['low', 'many', 'few'])
  })

  it('leaves alone a pod whose end would free next to nothing', () => {
    const small = pod('small', { used: { 'ephemeral-storage': 4096, inodes: 3 } })
    const large = pod('large', { used: { 'ephemeral-storage': 2 * mebibyte, inodes: 300 } })
    expect(rankForEviction([small, large], 'ephemeral-storage')).toEqual([large])
    expect(rankForEviction([small, large], 'inodes')).toEqual([large])
  })
})

describe('evictionMessage', () => {
  const threshold = {
    key: 'hard memory.available',
    signal: 'memory.available',
    value: { kind: 'amount', amount: 100 * mebibyte },
    graceMs: 0,
    minReclaim: undefined,
  } as const
  const observations = new Map([
    ['memory.available', { available: 50 * mebibyte, capacity: 1000 * mebibyte }] as const,
  ])

  it('says what was short, and which containers use more than they request', () => {
    const candidate = pod('web', {
      used: { memory: 300 * mebibyte },
      requested: { memory: 100 * mebibyte },
      containers: [
        { name: 'main', memoryBytes: 200 * mebibyte, diskBytes: 0, requests: { memory: 50 * mebibyte } },
        { name: 'side', memoryBytes: 20 * mebibyte, diskBytes: 0, requests: { memory: 50 * mebibyte } },
        { name: 'none', memoryBytes: undefined, diskBytes: 0, requests: {} },
      ],
    })
    expect(evictionMessage(threshold, observations, candidate)).toBe(
      'The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. Container main was using 200Mi, request is 50Mi, has larger consumption of memory. ',
    )
  })

  // id: pod-level-request
  it('names the pod where the pod as a whole requests memory', () => {
    const candidate = pod('web', {
      used: { memory: 300 * mebibyte },
      requested: { memory: 100 * mebibyte },
      podLevelMemory: true,
    })
    expect(evictionMessage(threshold, observations, candidate)).toContain(
      'Pod web was using 300Mi, request is 100Mi, has larger consumption of memory. ',
    )
  })

  // id: tells-inodes
  it('counts inodes without a unit, and blames no container for them', () => {
    const inodes = {
      ...threshold,
      signal: 'nodefs.inodesFree',
      value: { kind: 'share', share: 0.05 },
    } as const
    const few = new Map([['nodefs.inodesFree', { available: 4999, capacity: 100_000 }] as const])
    expect(evictionMessage(inodes, few, pod('web', {}))).toBe(
      'The node was low on resource: inodes. Threshold quantity: 5k, available: 4999. ',
    )
  })
})

describe('conditionMessage', () => {
  it('lists the conditions as the kubelet does', () => {
    expect(conditionMessage(['MemoryPressure', 'DiskPressure'])).toBe(
      'The node had condition: [MemoryPressure DiskPressure]. ',
    )
  })
})
