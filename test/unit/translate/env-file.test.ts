import { describe, expect, it } from 'vitest'
import { envFileValue, parseEnvFile } from '../../../src/translate/resolve-environment.ts'

const readEnvFile = (text: string, key: string) => envFileValue(parseEnvFile(text), key)

const text = `# a comment
  FIRST='one'

SECOND='two # no comment' # a comment
LINES='a
  b#'
EMPTY=
BLANK= 'dropped'
FIRST='again'
`

describe('an env file', () => {
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
    ["A='1\n2'\nB='3\n4' x", 'line 4: unexpected content after closing quote'],
    ["A='1\n2'\n\nNAME\nKEY='x'", "line 4: missing '='"],
  ])('%j is refused', (bad, message) => {
    expect(() => readEnvFile(bad, 'KEY')).toThrow(message)
  })

  it('is read as far as it goes', () => {
    const file = parseEnvFile("A='1'\nB='2")
    expect(envFileValue(file, 'A')).toBe('1')
    expect(() => envFileValue(file, 'C')).toThrow('line 2')
  })

  it.each([
    ["A='1'\r\nB='x\r\ny'\r\n# z\r\n\r\nC='3'\r", { A: '1', B: 'x\ny', C: '3' }],
    ["A=\t\nB=''", { A: '', B: '' }],
    ["\n \t# c\n\tA='1' \t# '\n", { A: '1' }],
    ['', {}],
  ])('%j holds %j', (text, values) => {
    expect(parseEnvFile(text)).toEqual({ values: new Map(Object.entries(values)), problem: undefined })
  })
})
