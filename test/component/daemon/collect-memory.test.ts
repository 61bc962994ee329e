import { expect, it } from 'vitest'
import { collectMemoryJob } from '../../../src/daemon/watch-self.ts'
import { ManualClock } from '../../support/manual-clock.ts'

it('collects after the start and after each time of much work, once it is over, and not for its own work', async () => {
  const clock = new ManualClock()
  let [usedMs, collections] = [600, 0]
  const collect = () => {
    collections += 1
    usedMs += 900
  }
  const job = collectMemoryJob(() => usedMs, collect, clock)
  const counts: number[] = []
  for (const workMs of [0, 20, 20, 20, 900, 700, 20, 20, 20]) {
    await clock.advance(job.periodMs)
    usedMs += workMs
    await job.run(new AbortController().signal)
    counts.push(collections)
  }
  expect(counts).toEqual([0, 0, 1, 1, 1, 1, 1, 2, 2])
})
