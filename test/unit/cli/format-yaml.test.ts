import { expect, it } from 'vitest'
import { parse } from 'yaml'
import { formatYaml } from '../../../src/cli/output/format-yaml.ts'

const words = (
  'yes no on off y n ON true null ~ 1_000 0b11 0o17 017 0x1f 12:30:45 1.5 1e3 .inf .nan +1 685_230.15 ' +
  '2026-11-25 2026-11-25T20:00:00Z = << -'
)
  .split(' ')
  .concat('', ' x', 'a: b', 'tab\tx', 'two\nlines\n', '# x')

it.each(words)(
  'the string %j is read back as a string by YAML 1.1 and 1.2, as a value and as a key',
  (word) => {
    const value = { value: word, list: [word], data: { [word]: 'x' } }
    const text = formatYaml(value)
    for (const version of ['1.1', '1.2'] as const)
      expect(parse(text, { version, merge: false })).toEqual(value)
  },
)

it.each([['='], ['<<'], ['0o17'], ['2026-11-25T20:00:00Z'], ['tab\tx']])('%j is quoted', (word) => {
  expect(formatYaml({ word })).toMatch(/^word: "/u)
})

it('what needs no quotes has none', () => {
  expect(formatYaml({ a: 'busybox:1.36', b: 3, c: true, d: [], e: '/etc/x y' })).toBe(
    'a: busybox:1.36\nb: 3\nc: true\nd: []\ne: /etc/x y\n',
  )
})
