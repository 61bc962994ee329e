import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { escapeControls, escapeLine } from '../../../src/base/text.ts'
import { formatJson, formatYaml, formatProblem } from '../../../src/cli/output/report-format.ts'
import { Description } from '../../../src/cli/output/describe.ts'
import { Table } from '../../../src/cli/output/table.ts'

describe('text from elsewhere', () => {
  it.each([
    ['plain – ünïcödé 漢字', 'plain – ünïcödé 漢字'],
    ['a\u001B[2Jb', 'a^[[2Jb'],
    ['a\rb\0\u0007\u007F', 'a^Mb^@^G^?'],
    ['\u009B2J\u0085', '\\u009b2J\\u0085'],
    ['two\nlines\tand a tab', 'two\nlines\tand a tab'],
    ['evil\u202Etxt.exe\u2066', 'evil\\u202etxt.exe\\u2066'],
    ['a\u200Bb\u200D\uFEFF\u00AD', 'a\\u200bb\\u200d\\ufeff\\u00ad'],
    ['a\u2028b\u2029', 'a\\u2028b\\u2029'],
    ['\u{E0041}\uD800', '\\u{e0041}\\ud800'],
  ])('%j is shown as %j', (text, shown) => {
    expect(escapeControls(text)).toBe(shown)
    expect(escapeLine(text)).toBe(shown.replaceAll(/[\n\t]/gu, ' '))
  })

  const hard = [
    'evil\u202Etxt',
    'a\u0085b',
    '\u007F',
    '\u{E0041}',
    'two\nlines \u200B',
    '\u001B[2J',
    'plain',
    '\uFEFF',
    '\uD800',
  ]
  const data = { [hard[0] ?? '']: hard, nested: { text: hard.join('\n') } }

  it('means the same in JSON, and shows itself', () => {
    const text = formatJson(data)
    expect(JSON.parse(text)).toEqual(data)
    expect(escapeControls(text)).toBe(text)
  })

  it('means the same in YAML, and shows itself', async () => {
    const text = await formatYaml(data)
    expect(parse(text)).toEqual(data)
    expect(escapeControls(text)).toBe(text)
    expect(text).toContain('- plain\n')
  })

  it('keeps a table in its columns', () => {
    expect(
      new Table().layOut([
        ['NAME', 'MESSAGE'],
        ['a\u001B[1A', 'x\ny\tz\r'],
      ]),
    ).toBe('NAME     MESSAGE\na^[[1A   x y z^M\n')
  })

  it('makes no lines of its own in a description', () => {
    const text = new Description()
    text.add(0, 'Annotations', ['note: x\nStatus: Running\u001B[0m'])
    text.addBlock(0, 'Environment', ['A:  1\nB:  2'])
    expect(text.toString()).toBe(
      'Annotations:      note: x\n                    Status: Running^[[0m\nEnvironment:\n  A:  1\n    B:  2\n',
    )
  })

  it('makes one line of a problem', () => {
    const place = { path: 'a\u001B[2J.yaml', line: 1 }
    expect(formatProblem({ severity: 'error', place, message: 'is\nbad', hint: '\u009B' })).toBe(
      'a^[[2J.yaml:1: is bad (\\u009b)',
    )
  })
})
