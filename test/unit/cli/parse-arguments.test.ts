import { describe, expect, it } from 'vitest'
import type { FlagSpec } from '../../../src/cli/arguments/parse-arguments.ts'
import { parseArguments } from '../../../src/cli/arguments/parse-arguments.ts'

const specs: readonly FlagSpec[] = [
  { name: 'follow', short: 'f', doc: '' },
  { name: 'interactive', short: 'i', doc: '' },
  { name: 'tail', label: 'LINES', doc: '' },
  { name: 'namespace', short: 'n', label: 'NAME', doc: '' },
]

describe('parseArguments', () => {
  it.each<[argv: string, positionals: string[], flags: Record<string, string>]>([
    ['web', ['web'], {}],
    ['web -f', ['web'], { follow: '' }],
    ['-f web -n shop', ['web'], { follow: '', namespace: 'shop' }],
    ['-nshop', [], { namespace: 'shop' }],
    ['-n=shop', [], { namespace: 'shop' }],
    ['-if', [], { interactive: '', follow: '' }],
    ['-ifn shop', [], { interactive: '', follow: '', namespace: 'shop' }],
    ['--tail=3 --follow=false', [], { tail: '3', follow: 'false' }],
    ['-f=false', [], { follow: 'false' }],
    ['-if=true -n=shop', [], { interactive: '', follow: 'true', namespace: 'shop' }],
    ['--tail 3', [], { tail: '3' }],
    ['--tail -1', [], { tail: '-1' }],
    ['- -- -f --x', ['-', '-f', '--x'], {}],
  ])('reads %j', (argv, positionals, flags) => {
    const parsed = parseArguments(argv.split(' '), specs)
    expect(parsed.positionals).toEqual(positionals)
    expect(Object.fromEntries(parsed.flags.map(({ flag, text }) => [flag, text]))).toEqual(flags)
  })

  it('tells switches that are on', () => {
    const parsed = parseArguments(['--follow', '--interactive=false'], specs)
    expect([parsed.has('follow'), parsed.has('interactive'), parsed.has('tail')]).toEqual([
      true,
      false,
      false,
    ])
    expect(parseArguments(['-f', '--follow=false'], specs).has('follow')).toBe(false)
  })

  it.each([
    ['--folow', 'unknown flag --folow', 'Did you mean --follow?'],
    ['--zzz', 'unknown flag --zzz', 'With --help the verb lists its flags.'],
    ['-x', 'unknown flag -x', 'With --help the verb lists its flags.'],
    ['--tail', '--tail needs a value', undefined],
    ['-n', '-n needs a value', undefined],
    ['-f=maybe', '--follow takes no value but true or false', undefined],
    ['--follow=maybe', '--follow takes no value but true or false', undefined],
  ])('refuses %s', (argv, message, hint) => {
    expect(() => parseArguments([argv], specs)).toThrow(expect.objectContaining({ message, hint }))
  })

  it.each([['x'], ['1.5'], ['-2'], ['']])('refuses %j as a count', (text) => {
    const parsed = parseArguments([`--tail=${text}`], specs)
    expect(() => parsed.count('tail', -1)).toThrow('--tail must be a whole number, -1 or more')
  })
})
