import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { countRestarts, judgeMemory } from '../../../src/decide/node/judge-health.ts'
import type { MemoryFacts } from '../../../src/decide/node/judge-health.ts'

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
    ['does not in the first ten minutes', { uptimeMs: 10 * minuteMs - 1 }, false],
    ['does not while podd drains the host', { isBusy: true }, false],
    ['does not as soon after a restart that did not help', { restarts: 1 }, false],
    ['does so later', { restarts: 1, uptimeMs: 20 * minuteMs }, true],
    ['does so once a day in the end', { restarts: 16, uptimeMs: 24 * 60 * minuteMs }, true],
  ])('%s', (_, change, restarts) => {
    expect(judgeMemory({ ...above, ...change }).restarts).toBe(restarts)
  })

  it('that falls below the limit once begins anew', () => {
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
