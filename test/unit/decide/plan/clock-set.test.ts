import { describe, expect, it } from 'vitest'
import { clockStep, moveTime, showTime } from '../../../../src/decide/plan/clock-set.ts'

const hourMs = 3_600_000
const yearMs = 365 * 24 * hourMs
/** The host was booted an hour before. */
const before = { wallMs: Date.UTC(2026, 0, 1), uptimeMs: hourMs }
const later = (wallMs: number, uptimeMs = wallMs) => ({
  wallMs: before.wallMs + wallMs,
  uptimeMs: before.uptimeMs + uptimeMs,
})

it.each([
  ['time that passed', later(hourMs)],
  ['a host that was suspended for days', later(100 * hourMs)],
  ['clocks that were not read at once', later(hourMs + 1900, hourMs)],
])('takes %s for no step of the wall clock', (_title, now) => {
  expect(clockStep(before, now)).toBeUndefined()
})

it.each([
  ['back by an hour', -hourMs],
  ['back by years', -30 * yearMs],
  ['forward by a minute', 60_000],
  ['forward by 56 years, as on a board without a battery', 56 * yearMs],
])('sees the wall clock set %s', (_title, byMs) => {
  expect(clockStep(before, later(hourMs + byMs, hourMs))?.byMs).toBe(byMs)
})

describe('a step of the wall clock', () => {
  const step = clockStep(before, later(hourMs - 3 * hourMs, hourMs))!

  it.each([
    ['when the host was booted', -hourMs, -4 * hourMs],
    ['in this boot', 0, -3 * hourMs],
    ['at the step', hourMs, -2 * hourMs],
    ['before this boot', -hourMs - 1, -hourMs - 1],
    ['by a clock that was ahead of this one', 2 * hourMs, 2 * hourMs],
  ])('moves what was taken in this boot alone: %s', (_title, takenMs, nowMs) => {
    expect(moveTime(before.wallMs + takenMs, step)).toBe(before.wallMs + nowMs)
  })
})

it('shows what seems to be in the future as of before this boot', () => {
  expect(showTime(before.wallMs, before)).toBe('2026-01-01T00:00:00Z')
  expect(showTime(before.wallMs + 1, before)).toBe('2025-12-31T23:00:00Z')
})
