import { describe, expect, it } from 'vitest'
import { formatAge, formatAgeOf } from '../../../src/api/served-kind.ts'

const second = 1000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

describe('formatAge', () => {
  it.each([
    [-5 * second, '<invalid>'],
    [-0.5 * second, '0s'],
    [0, '0s'],
    [119 * second, '119s'],
    [2 * minute, '2m'],
    [2 * minute + second, '2m1s'],
    [9 * minute + 59 * second, '9m59s'],
    [10 * minute + 59 * second, '10m'],
    [179 * minute, '179m'],
    [3 * hour + 5 * minute, '3h5m'],
    [8 * hour + 5 * minute, '8h'],
    [47 * hour, '47h'],
    [2 * day + 3 * hour, '2d3h'],
    [9 * day, '9d'],
    [729 * day, '729d'],
    [3 * 365 * day + 4 * day, '3y4d'],
    [9 * 365 * day, '9y'],
  ])('writes %i ms as %s', (ageMs, text) => {
    expect(formatAge(ageMs)).toBe(text)
  })

  it('admits what it does not know', () => {
    expect(formatAgeOf(undefined, 0)).toBe('<unknown>')
    expect(formatAgeOf('soon', 0)).toBe('<unknown>')
  })
})
