import { describe, expect, it } from 'vitest'
import { SharedTurns, TurnPace } from '../../../src/base/clock.ts'
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
