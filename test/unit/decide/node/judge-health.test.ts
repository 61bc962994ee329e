import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  countRestarts,
  judgeCollection,
  judgeHealth,
  judgeMemory,
} from '../../../../src/decide/node/judge-health.ts'
import type { HealthFacts, MemoryFacts } from '../../../../src/decide/node/judge-health.ts'

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

const mi = 1024 * 1024
const minuteMs = 60_000
const above: MemoryFacts = {
  residentBytes: 257 * mi,
  limitBytes: 256 * mi,
  samplesAbove: 2,
  uptimeMs: 10 * minuteMs,
  restarts: 0,
  isBusy: false,
}

describe("podd's memory", () => {
  it.each<[what: string, change: Partial<MemoryFacts>, restarts: boolean]>([
    ['above the limit for three samples restarts podd', {}, true],
    ['at the limit does not', { residentBytes: 256 * mi }, false],
    ['above it for two samples does not', { samplesAbove: 1 }, false],
    ['does not where there is no limit', { limitBytes: -1 }, false],
    ['above a limit of nothing at all does', { limitBytes: 0 }, true],
    ['does not in the first ten minutes', { uptimeMs: 10 * minuteMs - 1 }, false],
    ['does not while podd drains the host', { isBusy: true }, false],
    ['does not as soon after a restart that did not help', { restarts: 1 }, false],
    ['does so later', { restarts: 1, uptimeMs: 20 * minuteMs }, true],
    ['does so once a day in the end', { restarts: 16, uptimeMs: 24 * 60 * minuteMs }, true],
  ])('%s', (_, change, restarts) => {
    expect(judgeMemory({ ...above, ...change }).restarts).toBe(restarts)
  })

  it('that falls below the limit once starts over', () => {
    expect(judgeMemory({ ...above, residentBytes: mi }).samplesAbove).toBe(0)
    expect(judgeMemory(above).samplesAbove).toBe(3)
  })

  it('counts restarts that follow one another, and forgets them after two days', () => {
    const hourMs = 60 * minuteMs
    expect(countRestarts({ uptimeMs: hourMs, restarts: 0 })).toBe(1)
    expect(countRestarts({ uptimeMs: 24 * hourMs, restarts: 5 })).toBe(6)
    expect(countRestarts({ uptimeMs: 48 * hourMs, restarts: 5 })).toBe(1)
    expect(countRestarts({ uptimeMs: hourMs, restarts: 16 })).toBe(16)
  })

  it('never makes podd restart more than eight times a day, whatever the limit', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 16 }), fc.integer({ min: 1, max: 3 }), (before, everyMinutes) => {
        let [restarts, startedAtMs, samplesAbove, count] = [before, 0, 0, 0]
        for (let nowMs = 0; nowMs < 1440 * minuteMs; nowMs += everyMinutes * minuteMs) {
          const facts = { ...above, samplesAbove, restarts, uptimeMs: nowMs - startedAtMs }
          const verdict = judgeMemory(facts)
          samplesAbove = verdict.samplesAbove
          if (!verdict.restarts) continue
          count += 1
          restarts = countRestarts(facts)
          startedAtMs = nowMs
          samplesAbove = 0
        }
        expect(count).toBeLessThanOrEqual(8)
      }),
    )
  })
})

it.each([
  ['podd is busy', { cpuMs: 2000, quietLooks: 5 }, { quietLooks: 0, collects: false }],
  ['podd is still busy', { cpuMs: 2000, quietLooks: 0 }, { quietLooks: 0, collects: false }],
  ['podd has become quiet', { cpuMs: 30, quietLooks: 0 }, { quietLooks: 1, collects: false }],
  ['it was quiet before', { cpuMs: 30, quietLooks: 1 }, { quietLooks: 2, collects: true }],
  ['podd stays quiet', { cpuMs: 30, quietLooks: 2 }, { quietLooks: 3, collects: false }],
  [
    'podd does as much as it may to be quiet',
    { cpuMs: 500, quietLooks: 0 },
    { quietLooks: 1, collects: false },
  ],
  ['a pod is started', { cpuMs: 60, quietLooks: 7 }, { quietLooks: 8, collects: false }],
  ['thirty pods are probed each second', { cpuMs: 350, quietLooks: 7 }, { quietLooks: 8, collects: false }],
])('garbage is collected once a time of much work is over: %s', (_, facts, verdict) => {
  expect(judgeCollection({ sinceMs: 10_000, ...facts })).toEqual(verdict)
})
