import { expect, it } from 'vitest'
import { slowness } from '../../support/slowness.ts'
import { findExpressions, hardTexts } from './regular-expressions.ts'

/** The square of it takes a second and more, and it itself a fraction of a millisecond. */
const length = 20_000
const maxMs = 20 * slowness

/** Expressions that only meet short texts, and which. */
const bounded: Readonly<Record<string, string>> = {
  '[-.]+$': 'the 63 characters that a hostname may have',
}

const expressions = findExpressions('src').filter(({ source }) => /[*+{]/u.test(source))

it('finds the expressions of the source', () => {
  expect(expressions.length).toBeGreaterThan(80)
})

it.each(expressions.filter(({ source }) => !Object.hasOwn(bounded, source)))(
  'is done with any text in time that grows with its length: $place /$source/',
  ({ source, flags }) => {
    for (const text of hardTexts({ source }, length)) {
      const ms = bestMs(source, flags, text)
      expect.soft(ms, `${JSON.stringify(text.slice(0, 60))}…`).toBeLessThan(maxMs)
      if (ms > maxMs) break
    }
  },
)

/** Of several tries, for the machine has other things to do. */
function bestMs(source: string, flags: string, text: string): number {
  let best = Number.POSITIVE_INFINITY
  for (let left = 4; left > 0 && best > maxMs; left -= 1) {
    const expression = new RegExp(source, flags)
    const before = process.threadCpuUsage()
    text.replace(expression, '')
    const { user, system } = process.threadCpuUsage(before)
    best = Math.min(best, (user + system) / 1000)
  }
  return best
}
