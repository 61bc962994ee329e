import { describe, expect, it } from 'vitest'
import { firstPace, allowedDelaySeconds, paceRequest } from '../../../../src/decide/sources/pace-requests.ts'
import type { Pace, RequestOutcome } from '../../../../src/decide/sources/pace-requests.ts'

const periodMs = 20_000
const unchanged: RequestOutcome = { isTaken: true, isChanged: false, waits: false, tookMs: 5 }
const changed: RequestOutcome = { ...unchanged, isChanged: true }
const failed: RequestOutcome = { ...unchanged, isTaken: false }
const held: RequestOutcome = { ...unchanged, waits: true, tookMs: 60_000 }
const pushed: RequestOutcome = { ...changed, waits: true }

/** How long each request may be held back, and the wait after it. */
function follow(...outcomes: readonly RequestOutcome[]): readonly string[] {
  let pace: Pace = firstPace
  return outcomes.map((outcome) => {
    const hold = allowedDelaySeconds(pace, 0.5)
    const next = paceRequest(pace, outcome, periodMs, 0.5)
    pace = next.pace
    return `${hold ?? '-'}/${next.waitMs}`
  })
}

const times = <T>(count: number, item: T): readonly T[] => Array.from({ length: count }, () => item)

describe('how a URL is asked', () => {
  it.each<[string, readonly RequestOutcome[], readonly string[]]>([
    [
      'at a time of its own in the first period, then by the period',
      [changed, unchanged, changed],
      ['5/10000', '5/20000', '5/20000'],
    ],
    [
      'sooner after a failure, and then less and less soon',
      times(7, failed),
      ['5/1000', '-/2000', '-/4000', '-/8000', '-/16000', '-/20000', '-/20000'],
    ],
    [
      'at once where the server holds answers back',
      [pushed, held, pushed, held],
      ['5/95', '53/0', '53/95', '53/0'],
    ],
    [
      'by the period where the server says so and doesn’t',
      [pushed, { ...unchanged, waits: true }, unchanged],
      ['5/95', '53/20000', '5/20000'],
    ],
    [
      'again so after the server was away',
      [pushed, failed, failed, unchanged, held],
      ['5/95', '53/2500', '-/2500', '-/95', '53/0'],
    ],
    [
      'for a shorter time where requests that are held back fail',
      [pushed, failed, unchanged, held, failed, unchanged, held],
      ['5/95', '53/2500', '-/95', '27/0', '27/2500', '-/95', '14/0'],
    ],
    [
      'sooner after an answer that is refused, and held back as before, for nothing was cut off',
      [pushed, ...times(4, { ...pushed, isTaken: false, isRefused: true }), pushed, held],
      ['5/95', '53/2500', '53/2500', '53/4000', '53/8000', '53/95', '53/0'],
    ],
    [
      'not before the server says',
      [
        { ...failed, retryAfterMs: 90_000 },
        { ...failed, retryAfterMs: 5 },
      ],
      ['5/90000', '-/2000'],
    ],
  ])('%s', (_title, outcomes, expected) => {
    expect(follow(...outcomes)).toEqual(expected)
  })

  it.each<[string, Pace, RequestOutcome, number, number]>([
    ['the period less a tenth', { ...firstPace, isFirst: false }, unchanged, 0, 18_000],
    ['the period and almost a tenth', { ...firstPace, isFirst: false }, unchanged, 0.75, 21_000],
    ['a quarter less than the first delay, after a failure', firstPace, failed, 0, 750],
    ['an eighth more than the first delay, after a failure', firstPace, failed, 0.75, 1125],
  ])('comes after %s, by chance', (_title, pace, outcome, random, waitMs) => {
    expect(paceRequest(pace, outcome, periodMs, random).waitMs).toBe(waitMs)
  })

  it('takes an unchanged answer after a whole second for one that was held back', () => {
    const answer = (tookMs: number) => paceRequest(firstPace, { ...held, tookMs }, periodMs, 0.5).pace.waits
    expect([answer(999), answer(1000)]).toEqual([false, true])
  })

  it('is by the period for a while where what lies between breaks off all that is held back', () => {
    const broken = [failed, unchanged, failed, unchanged, failed, unchanged]
    const seen = follow(pushed, ...broken, ...times(31, unchanged))
    expect(seen.slice(5, 8)).toEqual(['14/2500', '-/20000', '-/20000'])
    expect(seen.slice(8, -1).every((step) => step === '-/20000')).toBe(true)
    expect(seen.at(-1)).toBe('5/20000')
  })

  it('is never more than ten times a second, whatever the server answers', () => {
    let pace: Pace = firstPace
    let random = 1
    const outcomes = [unchanged, changed, failed, held, pushed, { ...unchanged, waits: true }]
    for (let turn = 0; turn < 10_000; turn += 1) {
      random = (random * 48_271) % 2_147_483_647
      const outcome = outcomes[random % outcomes.length] ?? failed
      const next = paceRequest(pace, outcome, 100, (random % 1000) / 1000)
      expect(next.waitMs + outcome.tookMs).toBeGreaterThanOrEqual(100)
      pace = next.pace
    }
  })
})

describe('a thousand hosts that start in one second', () => {
  it('don’t ask together', () => {
    let random = 12_345
    const next = (): number => (random = (random * 48_271) % 2_147_483_647) / 2_147_483_647
    const perSecond: number[] = Array.from({ length: 3600 }, () => 0)
    for (let host = 0; host < 1000; host += 1) {
      let pace: Pace = firstPace
      for (let atMs = next() * 1000; atMs < 3_600_000;) {
        const second = Math.floor(atMs / 1000)
        perSecond[second] = (perSecond[second] ?? 0) + 1
        const step = paceRequest(pace, unchanged, periodMs, next())
        pace = step.pace
        atMs += step.waitMs + unchanged.tookMs
      }
    }
    const settled = perSecond.slice(1)
    const [least, most] = [Math.min(...settled), Math.max(...settled)]
    const mean = settled.reduce((sum, count) => sum + count, 0) / settled.length
    const deviation = Math.sqrt(settled.reduce((sum, count) => sum + (count - mean) ** 2, 0) / settled.length)
    console.log(
      `requests a second: mean ${mean.toFixed(1)}, deviation ${deviation.toFixed(1)}, ${least} to ${most}`,
    )
    expect(mean).toBeGreaterThan(49)
    expect(mean).toBeLessThan(51)
    expect(most).toBeLessThan(100)
    expect(least).toBeGreaterThan(10)
  })
})
