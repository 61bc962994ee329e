import { describe, expect, it } from 'vitest'
import { describeOutcome, eventAllowance } from '../../../src/control/pod/prober-worker.ts'
import { ProberLag, ProberSchedule } from '../../../src/control/pod/prober.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { StallingClock } from './stalling-clock.ts'

describe('the schedule', () => {
  function schedule() {
    const clock = new ManualClock()
    const seen: [string, number][] = []
    const items = new Map<string, { readonly name: string }>()
    const of = (name: string) => {
      const item = items.get(name) ?? { name }
      items.set(name, item)
      return item
    }
    const wheel = new ProberSchedule<{ readonly name: string }>(clock, (item, dueMs) => {
      seen.push([item.name, dueMs])
    })
    return { clock, seen, of, wheel }
  }

  it('fires in the order of due times', async () => {
    const { clock, seen, of, wheel } = schedule()
    for (const [name, dueMs] of [
      ['d', 40],
      ['a', 10],
      ['c', 30],
      ['b', 20],
      ['b2', 20],
    ] as const) {
      wheel.set(of(name), dueMs)
    }
    await clock.advance(30)
    expect(seen).toEqual([
      ['a', 10],
      ['b', 20],
      ['b2', 20],
      ['c', 30],
    ])
    await clock.advance(10)
    expect(seen.at(-1)).toEqual(['d', 40])
    expect(clock.pendingTimers).toBe(0)
  })

  it('keeps the newest due time of an item only', async () => {
    const { clock, seen, of, wheel } = schedule()
    wheel.set(of('a'), 10)
    wheel.set(of('a'), 50)
    wheel.set(of('b'), 20)
    wheel.delete(of('b'))
    await clock.advance(49)
    expect(seen).toEqual([])
    await clock.advance(1)
    expect(seen).toEqual([['a', 50]])
    expect(clock.pendingTimers).toBe(0)
  })

  it('has one timer for all that is due at one time, until none of it is left', async () => {
    const { clock, seen, of, wheel } = schedule()
    for (const name of ['a', 'b', 'c']) wheel.set(of(name), 100)
    wheel.set(of('d'), 200)
    expect(clock.pendingTimers).toBe(2)
    wheel.delete(of('a'))
    wheel.set(of('b'), 200)
    expect(clock.pendingTimers).toBe(2)
    wheel.delete(of('c'))
    expect(clock.pendingTimers).toBe(1)
    await clock.advance(200)
    expect(seen).toEqual([
      ['d', 200],
      ['b', 200],
    ])
    expect(clock.pendingTimers).toBe(0)
  })

  it('goes by what an item that is due does to another one of the same time', async () => {
    const clock = new ManualClock()
    const seen: [string, number][] = []
    const wheel: ProberSchedule<{ readonly name: string }> = new ProberSchedule(clock, ({ name }, dueMs) => {
      seen.push([name, dueMs])
      if (name !== 'first' || dueMs !== 10) return
      wheel.delete(removed)
      wheel.set(later, 30)
      wheel.set(first, 20)
    })
    const [first, removed, later] = [{ name: 'first' }, { name: 'removed' }, { name: 'later' }] as const
    for (const item of [first, removed, later]) wheel.set(item, 10)
    await clock.advance(30)
    expect(seen).toEqual([
      ['first', 10],
      ['first', 20],
      ['later', 30],
    ])
    expect(clock.pendingTimers).toBe(0)
  })

  it('keeps order over many random sets and deletes', async () => {
    const { clock, seen, of, wheel } = schedule()
    const wanted = new Map<string, number>()
    let seed = 7
    const next = (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below
    for (let i = 0; i < 2_000; i += 1) {
      const name = `i${next(300)}`
      if (next(4) === 0) {
        wheel.delete(of(name))
        wanted.delete(name)
      } else {
        const dueMs = 1 + next(500)
        wheel.set(of(name), dueMs)
        wanted.set(name, dueMs)
      }
    }
    await clock.advance(500)
    expect(new Map(seen)).toEqual(wanted)
    expect(seen.map(([, dueMs]) => dueMs)).toEqual(seen.map(([, dueMs]) => dueMs).sort((a, b) => a - b))
    expect(seen).toHaveLength(wanted.size)
  })
})

describe("podd's own lag", () => {
  it('is nothing on a loop that keeps time', async () => {
    const clock = new ManualClock()
    const lag = new ProberLag(clock)
    const mark = lag.enter()
    await clock.advance(1_000)
    expect(lag.leave(mark)).toBe(0)
    expect(clock.pendingTimers).toBe(0)
  })

  it('is what the loop was kept from working, for those under way then', async () => {
    const clock = new StallingClock()
    const lag = new ProberLag(clock)
    const early = lag.enter()
    await clock.advance(100)
    clock.stall(400)
    const late = lag.enter()
    await clock.advance(100)
    expect(lag.leave(late)).toBe(0)
    expect(lag.leave(early)).toBeGreaterThanOrEqual(350)
  })

  it('counts a stall that no heartbeat has seen yet', async () => {
    const clock = new StallingClock()
    const lag = new ProberLag(clock)
    const mark = lag.enter()
    await clock.advance(10)
    clock.stall(500)
    expect(lag.leave(mark)).toBeGreaterThanOrEqual(450)
  })
})

describe('events', () => {
  it.each([
    ['failure', 'Liveness probe failed: no'],
    ['warning', 'Liveness probe warning: no'],
    ['unknown', 'Liveness probe errored and resulted in unknown state: no'],
    ['success', undefined],
  ] as const)('word a %s as the kubelet does', (result, message) => {
    expect(describeOutcome('liveness', { result, output: 'no' })).toBe(message)
  })

  it('cut long answers', () => {
    const message = describeOutcome('startup', { result: 'failure', output: 'x'.repeat(9_000) })
    expect(message).toHaveLength(1024)
    expect(message).toMatch(/^Startup probe failed: x+\.\.\.$/)
  })

  it('come 25 at once and then one every five minutes', () => {
    const events = eventAllowance(0)
    const passed = (from: number, times: number) =>
      Array.from({ length: times }, (_, i) => events.takeNow(from + i)).filter(Boolean).length
    expect(passed(1_000, 40)).toBe(25)
    expect(passed(200_000, 5)).toBe(0)
    expect(passed(301_100, 5)).toBe(1)
    expect(passed(100_000_000, 40)).toBe(25)
  })
})
