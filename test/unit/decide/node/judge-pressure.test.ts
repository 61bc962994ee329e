import { describe, expect, it } from 'vitest'
import { defaultEvictionHard } from '../../../../src/config/node-options.ts'
import {
  isMissed,
  judgePressure,
  listThresholds,
  noPressure,
  refuseUnderPressure,
  starvedResource,
} from '../../../../src/decide/node/judge-pressure.ts'
import type { Observations, PressureState, Threshold } from '../../../../src/decide/node/judge-pressure.ts'
import { makePod } from '../../../support/pod-builders.ts'

const none = {
  evictionHard: {},
  evictionSoft: {},
  evictionSoftGracePeriodMs: {},
  evictionMinimumReclaim: {},
  mergeDefaultEvictionSettings: false,
} as const
const mebibyte = 1024 ** 2

function memory(available: number): Observations {
  return new Map([['memory.available', { available: available * mebibyte, capacity: 1000 * mebibyte }]])
}

/** The verdicts on a series of looks, one every ten seconds. */
function looks(thresholds: readonly Threshold[], series: readonly Observations[], transitionMs = 0) {
  let state: PressureState = noPressure
  return series.map((observations, at) => {
    const verdict = judgePressure(thresholds, observations, state, { transitionMs, nowMs: at * 10_000 })
    state = verdict.state
    return [verdict.conditions.join(' '), verdict.starving.map(({ key }) => key).join(' ')]
  })
}

describe('listThresholds', () => {
  it('gives the defaults, and the memory of all pods the threshold of the host’s', () => {
    const keys = listThresholds({ ...none, evictionHard: defaultEvictionHard }).map(({ key }) => key)
    expect(keys).toEqual([
      'hard memory.available',
      'hard allocatableMemory.available',
      'hard nodefs.available',
      'hard nodefs.inodesFree',
      'hard imagefs.available',
      'hard imagefs.inodesFree',
    ])
  })

  it('replaces all defaults by what is said, unless they are to be merged', () => {
    const evictionHard = { 'pid.available': { kind: 'amount', amount: 10 } } as const
    expect(listThresholds({ ...none, evictionHard }).map(({ key }) => key)).toEqual(['hard pid.available'])
    const merged = listThresholds({ ...none, evictionHard, mergeDefaultEvictionSettings: true })
    expect(merged).toHaveLength(7)
  })

  it('gives soft thresholds their grace and both kinds their minimum reclaim', () => {
    const share = { kind: 'share', share: 0.2 } as const
    const minReclaim = { kind: 'amount', amount: 5 } as const
    const found = listThresholds({
      ...none,
      evictionSoft: { 'nodefs.available': share },
      evictionSoftGracePeriodMs: { 'nodefs.available': 30_000 },
      evictionMinimumReclaim: { 'nodefs.available': minReclaim },
    })
    expect(found).toEqual([
      { key: 'soft nodefs.available', signal: 'nodefs.available', value: share, graceMs: 30_000, minReclaim },
    ])
  })

  it('ignores containerfs, as the kubelet does', () => {
    const evictionHard = { 'containerfs.available': { kind: 'share', share: 0.5 } } as const
    expect(listThresholds({ ...none, evictionHard })).toEqual([])
  })
})

describe('isMissed', () => {
  const [threshold] = listThresholds({
    ...none,
    evictionHard: { 'nodefs.available': { kind: 'share', share: 0.1 } },
    evictionMinimumReclaim: { 'nodefs.available': { kind: 'share', share: 0.05 } },
  })
  const nodefs = (available: number): Observations =>
    new Map([['nodefs.available', { available, capacity: 1000 }]])

  it.each([
    { available: 99, missed: true, unrelieved: true },
    { available: 100, missed: false, unrelieved: true },
    { available: 149, missed: false, unrelieved: true },
    { available: 150, missed: false, unrelieved: false },
  ])('$available of 1000 at 10 %, and 5 % more to be relieved', ({ available, missed, unrelieved }) => {
    if (threshold === undefined) throw new Error('no threshold')
    expect(isMissed(threshold, nodefs(available), { withReclaim: false })).toBe(missed)
    expect(isMissed(threshold, nodefs(available), { withReclaim: true })).toBe(unrelieved)
    expect(isMissed(threshold, new Map(), { withReclaim: true })).toBe(false)
  })
})

describe('judgePressure', () => {
  const hard = listThresholds({
    ...none,
    evictionHard: { 'memory.available': { kind: 'amount', amount: 100 * mebibyte } },
  })
  const soft = listThresholds({
    ...none,
    evictionSoft: { 'memory.available': { kind: 'amount', amount: 100 * mebibyte } },
    evictionSoftGracePeriodMs: { 'memory.available': 20_000 },
  })

  it('acts on a hard threshold at once', () => {
    expect(looks(hard, [memory(200), memory(99), memory(100)])).toEqual([
      ['', ''],
      ['MemoryPressure', 'hard memory.available'],
      ['', ''],
    ])
  })

  it('acts on a soft one after its grace, shows the condition before, and starts over when it was relieved', () => {
    const series = [memory(50), memory(50), memory(50), memory(200), memory(50), memory(50)]
    expect(looks(soft, series)).toEqual([
      ['MemoryPressure', ''],
      ['MemoryPressure', ''],
      ['MemoryPressure', 'soft memory.available'],
      ['', ''],
      ['MemoryPressure', ''],
      ['MemoryPressure', ''],
    ])
  })

  it('keeps a condition for the transition period', () => {
    expect(
      looks(hard, [memory(50), memory(500), memory(500), memory(500)], 25_000).map(([first]) => first),
    ).toEqual(['MemoryPressure', 'MemoryPressure', 'MemoryPressure', ''])
  })

  it('goes on until the minimum reclaim is there as well', () => {
    const thresholds = listThresholds({
      ...none,
      evictionHard: { 'memory.available': { kind: 'amount', amount: 100 * mebibyte } },
      evictionMinimumReclaim: { 'memory.available': { kind: 'amount', amount: 50 * mebibyte } },
    })
    const verdicts = looks(thresholds, [memory(120), memory(99), memory(120), memory(150), memory(120)])
    const starving = 'hard memory.available'
    expect(verdicts.map(([, second]) => second)).toEqual(['', starving, starving, '', ''])
  })

  it('changes nothing while a signal cannot be read', () => {
    expect(looks(hard, [memory(50), new Map(), new Map(), memory(500)])).toEqual([
      ['MemoryPressure', 'hard memory.available'],
      ['MemoryPressure', ''],
      ['MemoryPressure', ''],
      ['', ''],
    ])
    expect(looks(hard, [new Map(), memory(500)])).toEqual([
      ['', ''],
      ['', ''],
    ])
  })

  it('puts memory before all else', () => {
    const thresholds = listThresholds({
      ...none,
      evictionHard: {
        'nodefs.available': { kind: 'amount', amount: 10 },
        'pid.available': { kind: 'amount', amount: 10 },
        'memory.available': { kind: 'amount', amount: 10 },
      },
    }).toReversed()
    const low = { available: 1, capacity: 100 }
    const observations = new Map(thresholds.map(({ signal }) => [signal, low]))
    const { conditions, starving } = judgePressure(thresholds, observations, noPressure, {
      transitionMs: 0,
      nowMs: 0,
    })
    expect(conditions).toEqual(['MemoryPressure', 'DiskPressure', 'PIDPressure'])
    expect(starving.map((each) => starvedResource(each))).toEqual([
      'memory',
      'memory',
      'pids',
      'ephemeral-storage',
    ])
  })
})

const bestEffort = makePod()
const burstable = makePod({ containers: [{ name: 'main', resources: { requests: { cpu: '100m' } } }] })
const critical = makePod({ spec: { priority: 2_000_000_000 } })

describe('refuseUnderPressure', () => {
  it.each([
    ['a best-effort pod, nothing is short', bestEffort, [], undefined],
    ['a best-effort pod, memory is short', bestEffort, ['MemoryPressure'], '[MemoryPressure]'],
    ['a burstable pod, memory is short', burstable, ['MemoryPressure'], undefined],
    ['a burstable pod, a disk is short', burstable, ['DiskPressure'], '[DiskPressure]'],
    [
      'a burstable pod, both are',
      burstable,
      ['MemoryPressure', 'DiskPressure'],
      '[MemoryPressure DiskPressure]',
    ],
    ['a critical pod, both are', critical, ['MemoryPressure', 'DiskPressure'], undefined],
  ] as const)('%s', (_, { spec }, shortages, conditions) => {
    expect(refuseUnderPressure(spec, shortages)).toEqual(
      conditions && { reason: 'NodeUnderPressure', message: `The node had condition: ${conditions}. ` },
    )
  })
})
