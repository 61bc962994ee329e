import { describe, expect, it } from 'vitest'
import { evictionOptionProblems, evictionOptions } from '../../../src/config/node-options.ts'

const { type } = evictionOptions.evictionHard

describe('eviction thresholds', () => {
  it.each([
    ['memory.available<100Mi,nodefs.available<10%', 'memory.available<100Mi,nodefs.available<10%'],
    ['pid.available<1k', 'pid.available<1000'],
    ['imagefs.available<12.5%', 'imagefs.available<12.5%'],
    ['', ''],
    ['memory.available<0%', ''],
    ['memory.available<100%', ''],
  ])('reads the flag %j', (text, shown) => {
    const read = type.fromText(text)
    expect(read.kind === 'ok' && type.format(read.value)).toBe(shown)
  })

  it.each([
    ['memory.free<1Gi', 'must not name "memory.free"'],
    ['memory.available', 'has no value for memory.available'],
    ['memory.available<0', 'memory.available must be positive'],
    ['memory.available<-1Gi', 'memory.available must be positive'],
    ['nodefs.available<101%', 'nodefs.available must be from 0% to 100%'],
    [
      'nodefs.available<ten',
      'nodefs.available must be a quantity such as 100Mi, or a percentage such as 10%',
    ],
  ])('refuses %j', (text, message) => {
    const read = type.fromText(text)
    expect(read.kind === 'bad' && read.message).toContain(message)
  })

  it('reads a mapping in the file', () => {
    expect(type.fromFile({ 'memory.available': '1Gi', 'pid.available': 100 })).toEqual({
      kind: 'ok',
      value: {
        'memory.available': { kind: 'amount', amount: 1024 ** 3 },
        'pid.available': { kind: 'amount', amount: 100 },
      },
    })
    expect(type.fromFile([])).toEqual({ kind: 'bad', message: 'must be a mapping of signals' })
  })

  it('reads grace periods', () => {
    const periods = evictionOptions.evictionSoftGracePeriodMs.type
    const read = periods.fromText('memory.available=1m30s')
    expect(read).toEqual({ kind: 'ok', value: { 'memory.available': 90_000 } })
    expect(read.kind === 'ok' && periods.format(read.value)).toBe('memory.available=1m30s')
    expect(periods.fromText('memory.available=soon').kind).toBe('bad')
    expect(periods.fromText('memory.available=-1s').kind).toBe('bad')
  })

  it('asks for the grace period of each soft threshold', () => {
    const evictionSoft = {
      'memory.available': { kind: 'amount', amount: 1 },
      'pid.available': { kind: 'amount', amount: 1 },
    } as const
    expect(
      evictionOptionProblems({ evictionSoft, evictionSoftGracePeriodMs: { 'pid.available': 0 } }),
    ).toEqual([
      {
        field: 'evictionSoftGracePeriod',
        message: 'must have a grace period for memory.available, which evictionSoft names',
      },
    ])
  })
})
