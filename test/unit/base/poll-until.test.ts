import { expect, it } from 'vitest'
import { pollUntil } from '../../../src/base/clock.ts'
import { ManualClock } from '../../support/manual-clock.ts'

it('asks at once and each period, until the answer is yes', async () => {
  const clock = new ManualClock()
  let asked = 0
  const found = pollUntil(clock, () => (asked += 1) === 3, { periodMs: 10, timeoutMs: 100 })
  await clock.advance(19)
  expect(asked).toBe(2)
  await clock.advance(1)
  expect(await found).toBe(true)
})

it('asks once more when the time is over, and gives up', async () => {
  const clock = new ManualClock()
  let asked = 0
  const found = pollUntil(clock, async () => (asked += 1) > 100, { periodMs: 10, timeoutMs: 25 })
  await clock.advance(100)
  expect(await found).toBe(false)
  expect(asked).toBe(4)
})

it('is left with the reason of the signal', async () => {
  const leave = new AbortController()
  const found = pollUntil(new ManualClock(), () => false, {
    periodMs: 10,
    timeoutMs: 25,
    signal: leave.signal,
  })
  leave.abort(new Error('enough'))
  await expect(found).rejects.toThrow('enough')
})
