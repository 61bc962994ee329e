import { expect, it } from 'vitest'
import { Changes } from '../../../src/base/waits.ts'
import { ManualClock } from '../../support/manual-clock.ts'

it('looks again after each change that is noted, and at no other time', async () => {
  const clock = new ManualClock()
  const changes = new Changes()
  let looks = 0
  let value = 0
  const found = changes.until(
    () => {
      looks += 1
      return value === 2
    },
    clock,
    60_000,
  )
  await clock.advance(59_000)
  expect(looks).toBe(1)
  for (value of [1, 2]) {
    changes.note()
    await clock.settle()
  }
  expect([await found, looks, clock.pendingTimers]).toEqual([true, 3, 0])
})

it('gives up after the time that it was given, with a last look', async () => {
  const clock = new ManualClock()
  const found = new Changes().until(() => clock.monotonicMs() > 100_000, clock, 1000)
  await clock.advance(1000)
  expect([await found, clock.pendingTimers]).toEqual([false, 0])
})

it('stops to wait with the reason of the signal', async () => {
  const clock = new ManualClock()
  const stop = new AbortController()
  const found = new Changes().until(() => false, clock, 1000, stop.signal)
  stop.abort(new Error('podd stops'))
  await expect(found).rejects.toThrow('podd stops')
  expect(clock.pendingTimers).toBe(0)
})

it('wakes all that wait, each once for a change', async () => {
  const clock = new ManualClock()
  const changes = new Changes()
  const woken: string[] = []
  const wait = async (name: string): Promise<void> => {
    await changes.next(clock, 1000)
    woken.push(name)
  }
  const waits = [wait('a'), wait('b')]
  changes.note()
  await Promise.all(waits)
  changes.note()
  expect(woken).toEqual(['a', 'b'])
})
