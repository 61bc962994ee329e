import { describe, expect, it } from 'vitest'
import { judgeHealth } from '../../../src/decide/node/judge-health.ts'
import type { HealthFacts } from '../../../src/decide/node/judge-health.ts'

const nowMs = 10_000_000
const well: HealthFacts = {
  nowMs,
  relistPeriodMs: 60_000,
  listedAtMs: nowMs - 60_000,
  isRuntimeDown: false,
  isNetworkDown: false,
}

function failures(change: Partial<HealthFacts>): readonly string[] {
  return judgeHealth({ ...well, ...change }).flatMap(({ name, failure }) =>
    failure === undefined ? [] : [`${name}: ${failure}`],
  )
}

describe('podd checks itself', () => {
  it('by the same checks always, of which two say more than that podd works', () => {
    expect(judgeHealth(well).map(({ name, about }) => `${name} ${about}`)).toEqual([
      'ping live',
      'sync-loop live',
      'relist live',
      'event-loop live',
      'runtime ready',
      'network ready',
    ])
  })

  it.each<[what: string, change: Partial<HealthFacts>, failing: readonly string[]]>([
    ['all is well', {}, []],
    ['an event has waited for as long as it may', { eventWaitsSinceMs: nowMs - 120_000 }, []],
    [
      'the sync loop stalls',
      { eventWaitsSinceMs: nowMs - 121_000 },
      ['sync-loop: an event has waited for 121 s'],
    ],
    ['the runtime was never listed', { listedAtMs: undefined }, []],
    ['a list takes as long as it may', { listedAtMs: nowMs - 420_000 }, []],
    [
      'the list is too old',
      { listedAtMs: nowMs - 421_000 },
      ['relist: the container runtime was listed 421 s ago'],
    ],
    ['a longer period was asked for', { listedAtMs: nowMs - 421_000, relistPeriodMs: 600_000 }, []],
    ['podd was blocked for a moment', { blocked: { untilMs: nowMs, durationMs: 14_999 } }, []],
    [
      'podd was blocked',
      { blocked: { untilMs: nowMs - 30_000, durationMs: 15_000 } },
      ['event-loop: podd was blocked for 15 s'],
    ],
    ['that has passed', { blocked: { untilMs: nowMs - 30_001, durationMs: 90_000 } }, []],
    [
      'the runtime has no network',
      { isNetworkDown: true },
      ['network: the container runtime has no network for pods'],
    ],
    ['the runtime is down', { isRuntimeDown: true }, ['runtime: the container runtime is not available']],
  ])('%s', (_, change, failing) => {
    expect(failures(change)).toEqual(failing)
  })
})
