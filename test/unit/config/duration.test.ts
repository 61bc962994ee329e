import { describe, expect, it } from 'vitest'
import { spellDuration, parseDuration } from '../../../src/config/option-type.ts'

describe('parseDuration', () => {
  it.each([
    ['0', 0],
    ['0s', 0],
    ['20s', 20_000],
    ['1m30s', 90_000],
    ['1.5h', 5_400_000],
    ['.5s', 500],
    ['1h15m30.918s', 4_530_918],
    ['100ms', 100],
    ['1500us', 1.5],
    ['2µs', 0.002],
    ['-5s', -5000],
    ['+5s', 5000],
  ])('reads %s', (text, durationMs) => {
    expect(parseDuration(text)).toBeCloseTo(durationMs, 6)
  })

  it.each(['', '5', 's', '1 s', '1d', '1m 30s', '--5s', '1m30', 'abc', '1.2.3s'])('refuses %j', (text) => {
    expect(() => parseDuration(text)).toThrow('is not a duration')
  })

  it.each([
    [0, '0s'],
    [90_000, '1m30s'],
    [250, '250ms'],
    [3_600_000, '1h'],
    [-1500, '-1s500ms'],
  ])('is read back from how %i is written', (durationMs, text) => {
    expect(spellDuration(durationMs)).toBe(text)
    expect(parseDuration(text)).toBe(durationMs)
  })
})
