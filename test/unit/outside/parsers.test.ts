import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { slowness } from '../../support/slowness.ts'
import type { OutsideParser } from './parsers.ts'
import { outsideParsers } from './parsers.ts'

/** Text four times as long may take four times as long, and some more; a square would be sixteen times. */
const growth = 4
const mostGrowth = 9
/** Shorter times say nothing. */
const noiseMs = 10 * slowness
/** What nothing from outside holds the event loop for longer. */
const mostDelayMs = 50 * slowness

it.each(outsideParsers)('$name is read in time that grows with its size', ({ mostBytes, texts, read }) => {
  const hard: Record<string, number> = {}
  for (const make of texts) {
    const [small, large] = [make(mostBytes / growth), make(mostBytes)]
    let best = Number.POSITIVE_INFINITY
    for (let left = 30; left > 0 && best >= 1; left -= 1) {
      const smallMs = timeMs(() => read(small))
      const largeMs = timeMs(() => read(large))
      best = Math.min(best, largeMs / Math.max(noiseMs, smallMs * mostGrowth))
    }
    if (best >= 1) hard[large.slice(0, 40)] = best
  }
  expect(hard).toEqual({})
})

it.each(outsideParsers)('$name never holds the event loop', async ({ mostBytes, texts, read }) => {
  const hard: Record<string, number> = {}
  for (const make of texts) {
    const text = make(mostBytes)
    const delayMs = await bestDelayMs({ read }, text)
    if (delayMs >= mostDelayMs) hard[text.slice(0, 40)] = delayMs
  }
  expect(hard).toEqual({})
})

function timeMs(act: () => unknown): number {
  const before = performance.now()
  act()
  return performance.now() - before
}

/** How long a text holds the event loop, in the best of several tries: the machine has other things to do. */
async function bestDelayMs({ read }: Pick<OutsideParser, 'read'>, text: string): Promise<number> {
  let best = Number.POSITIVE_INFINITY
  for (let left = 30; left > 0 && best >= mostDelayMs; left -= 1) {
    const delay = monitorEventLoopDelay({ resolution: 1 })
    delay.enable()
    await sleep(3)
    read(text)
    await sleep(3)
    delay.disable()
    best = Math.min(best, delay.max / 1e6)
  }
  return best
}
