import { describe, expect, it } from 'vitest'
import { readEnvFile } from '../../../src/translate/env-file.ts'

const text = `# a comment
  FIRST='one'

SECOND='two # no comment' # a comment
LINES='a
  b#'
EMPTY=
BLANK= 'dropped'
FIRST='again'
`

describe('readEnvFile', () => {
  it.each([
    ['FIRST', 'one'],
    ['SECOND', 'two # no comment'],
    ['LINES', 'a\n  b#'],
    ['BLANK', ''],
    ['NONE', undefined],
  ])('%s is %j', (key, value) => {
    expect(readEnvFile(text.replace('EMPTY=\n', ''), key)).toBe(value)
  })

  it.each([
    ['KEY', "line 1: missing '='"],
    ["='x'", 'line 1: empty variable name'],
    ["KEY ='x'", "line 1: whitespace before '=' is not allowed"],
    ['KEY=x', 'line 1: value must be enclosed in single quotes'],
    ["KEY='x' y", 'line 1: unexpected content after closing quote'],
    ["A='1'\nKEY='x\ny", 'line 2: unclosed single quote'],
  ])('%j is refused', (bad, message) => {
    expect(() => readEnvFile(bad, 'KEY')).toThrow(message)
  })
})
