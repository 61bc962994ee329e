import { expect, it } from 'vitest'
import { clockSetMs } from '../../../../src/decide/plan/pod-facts.ts'

const hourMs = 3_600_000
const before = { wallMs: 1_000_000, monotonicMs: 5 }

it.each([
  ['time that passed', 0, 0],
  ['a slewed clock', -10_000, 0],
  ['a suspended host', 20 * hourMs, 0],
  ['a clock that was slewed as far as one is', -60_000, 0],
  ['a clock that was set back by more than that', -60_001, -60_001],
  ['a host that was suspended for a day', 24 * hourMs, 0],
  ['a clock that was set forward by more than a day', 24 * hourMs + 1, 24 * hourMs + 1],
  ['the first synchronization of a board without a battery', 56 * 365 * 24 * hourMs, 56 * 365 * 24 * hourMs],
  ['a clock that was set back by years', -30 * 365 * 24 * hourMs, -30 * 365 * 24 * hourMs],
  ['a clock that was set back by an hour', -hourMs, -hourMs],
])('tells that the wall clock was set from %s', (_title, gainedMs, setMs) => {
  const now = { wallMs: before.wallMs + hourMs + gainedMs, monotonicMs: before.monotonicMs + hourMs }
  expect(clockSetMs(before, now)).toBe(setMs)
})
