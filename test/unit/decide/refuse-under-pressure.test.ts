import { describe, expect, it } from 'vitest'
import { refuseUnderPressure } from '../../../src/decide/node/judge-pressure.ts'
import { makePod } from '../../support/pod-builders.ts'

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
