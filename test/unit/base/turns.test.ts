import { describe, expect, it } from 'vitest'
import { isoTime, mapInTurns, PacedWork, SharedTurns, TurnPace } from '../../../src/base/clock.ts'
import { ManualClock } from '../../support/manual-clock.ts'

/** In which turn of the event loop each piece of work began, where each takes so long. */
async function begin(pieces: number, tookMs: number): Promise<readonly number[]> {
  const clock = new ManualClock()
  let nowMs = 0
  const turns = new SharedTurns(Object.assign(clock, { monotonicMs: () => nowMs }))
  let turn = 0
  let isDone = false
  const count = (): void => {
    turn += 1
    if (!isDone) setImmediate(count)
  }
  setImmediate(count)
  const begun = await Promise.all(
    Array.from({ length: pieces }, async () => {
      const wait = turns.enter()
      if (wait !== undefined) await wait
      nowMs += tookMs
      return turn
    }),
  )
  isDone = true
  return begun
}

describe('the turns of many workers', () => {
  it('are one where there is little work', async () => {
    expect(new Set(await begin(100, 0))).toEqual(new Set([0]))
  })

  it('are as many as there is work that takes a turn, in the order in which it came', async () => {
    const begun = await begin(2500, 10)
    expect(new Set(begun).size).toBe(2500)
    expect(begun).toEqual(begun.toSorted((a, b) => a - b))
  })
})

it('divides work by the time that it has taken, and not at all by a clock that stands still', async () => {
  const clock = new ManualClock()
  const pace = new TurnPace(clock)
  expect(pace.isOver).toBe(false)
  await clock.advance(10)
  expect(pace.isOver).toBe(true)
  await pace.next()
  expect(pace.isOver).toBe(false)
})

it('does a list of work in turns, and gives the results in the order of the list', async () => {
  const clock = new ManualClock()
  let nowMs = 0
  Object.assign(clock, { monotonicMs: () => nowMs })
  let turn = 0
  const doubled = mapInTurns(clock, [1, 2, 3], (each) => {
    nowMs += 10
    setImmediate(() => {
      turn += 1
    })
    return [each, turn]
  })
  expect(await doubled).toEqual([
    [1, 0],
    [2, 1],
    [3, 2],
  ])
})

describe('work that many changes ask for', () => {
  const rig = (tookMs: number) => {
    const clock = new ManualClock()
    let spentMs = 0
    const began: number[] = []
    const elapsed = clock.monotonicMs.bind(clock)
    Object.assign(clock, { monotonicMs: () => elapsed() + spentMs })
    const work = new PacedWork(clock, () => {
      began.push(clock.monotonicMs())
      spentMs += tookMs
    })
    return { clock, began, work }
  }

  it('is done once for all that asks at a time, and at once while it takes no time', async () => {
    const { clock, began, work } = rig(0)
    work.ask()
    work.ask()
    expect(began).toHaveLength(0)
    await clock.settle()
    expect(began).toHaveLength(1)
    work.ask()
    await clock.settle()
    expect(began).toHaveLength(2)
  })

  it('takes at most a fifth of the time', async () => {
    const { clock, began, work } = rig(10)
    work.ask()
    await clock.settle()
    work.ask()
    await clock.advance(39)
    expect(began).toHaveLength(1)
    await clock.advance(2)
    expect(began).toHaveLength(2)
  })

  it('is done once more for all that ask while it takes several turns, and not before it has ended', async () => {
    const clock = new ManualClock()
    const ends: (() => void)[] = []
    const work = new PacedWork(clock, () => new Promise((resolve) => void ends.push(resolve)))
    work.ask()
    await clock.settle()
    work.ask()
    work.ask()
    await clock.settle()
    expect(ends).toHaveLength(1)
    ends[0]?.()
    await clock.settle()
    expect(ends).toHaveLength(2)
    ends[1]?.()
    await clock.settle()
    expect(ends).toHaveLength(2)
  })

  it('is not done any more once it was stopped', async () => {
    const { clock, began, work } = rig(10)
    work.ask()
    work.stop()
    await clock.advance(100)
    expect(began).toHaveLength(0)
  })
})

it('writes each time as Date does, which would load the names of time zones', () => {
  const year = 365.25 * 86_400_000
  const times = [
    0,
    1,
    -1,
    999.9,
    -0.5,
    Date.UTC(2000, 1, 29, 23, 59, 59, 999),
    Date.UTC(9999, 11, 31),
    8.64e15,
    -8.64e15,
  ]
  const many = Array.from({ length: 500 }, (_, index) => (index - 60) * 16.18 * year + index * 7_654_321)
  for (const time of [...times, ...many]) expect(isoTime(time)).toBe(new Date(time).toISOString())
  expect(() => isoTime(Number.NaN)).toThrow(RangeError)
})
