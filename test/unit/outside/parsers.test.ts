import { expect, it } from 'vitest'
import { slowness } from '../../support/slowness.ts'
import { cpuMs, eventLoopDelayMs } from '../../support/thread-time.ts'
import { outsideParsers } from './parsers.ts'

/** Text four times as long may take four times as long, and some more; a square would be sixteen times. */
const growth = 4
const mostGrowth = 9
/** Shorter times say nothing. */
const noiseMs = 10 * slowness
/** What nothing from outside holds the event loop for longer. */
const mostDelayMs = 50 * slowness

it.each(outsideParsers)(
  '$name is read in time that grows with its size',
  async ({ mostBytes, texts, read }) => {
    const hard: Record<string, number> = {}
    for (const make of texts) {
      const [small, large] = [make(mostBytes / growth), make(mostBytes)]
      let best = Number.POSITIVE_INFINITY
      for (let left = 10; left > 0 && best >= 1; left -= 1) {
        const smallMs = await cpuMs(() => read(small))
        const largeMs = await cpuMs(() => read(large))
        best = Math.min(best, largeMs / Math.max(noiseMs, smallMs * mostGrowth))
      }
      if (best >= 1) hard[large.slice(0, 40)] = best
    }
    expect(hard).toEqual({})
  },
)

it.each(outsideParsers)('$name never holds the event loop', async ({ mostBytes, texts, read }) => {
  const hard: Record<string, number> = {}
  for (const make of texts) {
    const text = make(mostBytes)
    const delayMs = await eventLoopDelayMs(() => read(text), mostDelayMs)
    if (delayMs >= mostDelayMs) hard[text.slice(0, 40)] = delayMs
  }
  expect(hard).toEqual({})
})
