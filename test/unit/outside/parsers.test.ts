import { expect, it } from 'vitest'
import { slowness } from '../../support/slowness.ts'
import { cpuMs, eventLoopDelayMs } from '../../support/thread-time.ts'
import { outsideParsers } from './parsers.ts'

/** Text four times as long may take four times as long, and some more; a square would be sixteen times. */
const growth = 4
const maxGrowth = 9
/** Shorter times say nothing. */
const noiseMs = 10 * slowness
/** What nothing from outside holds the event loop for longer. */
const maxDelayMs = 50 * slowness

it.each(outsideParsers)(
  '$name is read in time that grows with its size',
  async ({ maxBytes, texts, read }) => {
    const hard: Record<string, number> = {}
    for (const make of texts) {
      const [small, large] = [make(maxBytes / growth), make(maxBytes)]
      let best = Number.POSITIVE_INFINITY
      for (let left = 10; left > 0 && best >= 1; left -= 1) {
        const smallMs = await cpuMs(() => read(small))
        const largeMs = await cpuMs(() => read(large))
        best = Math.min(best, largeMs / Math.max(noiseMs, smallMs * maxGrowth))
      }
      if (best >= 1) hard[large.slice(0, 40)] = best
    }
    expect(hard).toEqual({})
  },
)

it.each(outsideParsers)('$name never holds the event loop', async ({ maxBytes, texts, read }) => {
  const hard: Record<string, number> = {}
  for (const make of texts) {
    const text = make(maxBytes)
    const delayMs = await eventLoopDelayMs(() => read(text), maxDelayMs)
    if (delayMs >= maxDelayMs) hard[text.slice(0, 40)] = delayMs
  }
  expect(hard).toEqual({})
})
