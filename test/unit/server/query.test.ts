import { expect, it } from 'vitest'
import { booleanParam } from '../../../src/server/requests/route.ts'

it.each([
  ['', false],
  ['watch=false', false],
  ['watch=False', false],
  ['watch=0', false],
  ['watch', true],
  ['watch=', true],
  ['watch=1', true],
  ['watch=true', true],
  // As Python's clients send it.
  ['watch=True', true],
  ['watch=maybe', true],
])('a parameter of yes or no: %s', (query, expected) => {
  expect(booleanParam(new URLSearchParams(query), 'watch')).toBe(expected)
})
