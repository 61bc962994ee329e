import { describe, expect, it } from 'vitest'
import { computeSubPath } from '../../../src/translate/volumes/sub-paths.ts'

const environment = new Map([
  ['NAME', 'web-0'],
  ['UP', '..'],
  ['ROOT', '/etc'],
])

describe('computeSubPath', () => {
  it.each([
    [{}, undefined],
    [{ subPath: '' }, undefined],
    [{ subPath: 'a/$(NAME)' }, 'a/$(NAME)'],
    [{ subPathExpr: 'a/$(NAME)' }, 'a/web-0'],
    [{ subPathExpr: '$$(NONE)' }, '$(NONE)'],
  ])('of %j is %j', (mount, path) => {
    expect(computeSubPath(mount, environment)).toBe(path)
  })

  it.each([
    ['$(NONE)', 'missing value for "NONE"'],
    ['a/$(UP)/b', "must not contain '..'"],
    ['$(ROOT)', 'must not be an absolute path'],
  ])('of %j is refused', (subPathExpr, message) => {
    expect(() => computeSubPath({ subPathExpr }, environment)).toThrow(message)
  })
})
