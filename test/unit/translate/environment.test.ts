import { noObjects } from '../../support/object-rules.ts'
import { describe, expect, it } from 'vitest'
import {
  ExecSpace,
  execLimits,
  expandCommand,
  expandWords,
  expandReferences,
  splitReferences,
} from '../../../src/translate/environment.ts'
import type { ExecLimits } from '../../../src/translate/environment.ts'
import { resolveEnvironment } from '../../../src/translate/resolve-environment.ts'
import { makePod } from '../../support/pod-builders.ts'

const environment = new Map([
  ['VAR', 'value'],
  ['EMPTY', ''],
  ['DOLLARS', '$(VAR)'],
])

describe('expandReferences', () => {
  it.each([
    ['plain', 'plain'],
    ['$(VAR)', 'value'],
    ['a-$(VAR)-$(VAR)-b', 'a-value-value-b'],
    ['[$(EMPTY)]', '[]'],
    ['$(UNKNOWN)', '$(UNKNOWN)'],
    ['$$(VAR)', '$(VAR)'],
    ['$$$(VAR)', '$value'],
    ['$$$$(VAR)', '$$(VAR)'],
    ['$$', '$'],
    ['$', '$'],
    ['$VAR ${VAR}', '$VAR ${VAR}'],
    ['$(VAR', '$(VAR'],
    ['$()', '$()'],
    ['$($(VAR))', '$($(VAR))'],
    ['$(DOLLARS)', '$(VAR)'],
    ['foo$(VAR)$$$', 'foovalue$$'],
  ])('%s gives %s', (text, expected) => {
    expect(expandReferences(text, environment, 1000)).toBe(expected)
  })
})

describe('expandReferences', () => {
  it.each([
    ['what it is given', 'x'.repeat(101), undefined],
    ['what it makes', '$(VAR)'.repeat(21), undefined],
    ['no more than that', '$(VAR)'.repeat(16), 'value'.repeat(16)],
    ['bytes, not characters', 'é'.repeat(51), undefined],
  ])('bounds %s', (_, text, expanded) => {
    expect(expandReferences(text, environment, 100)).toBe(expanded)
  })
})

describe('splitReferences', () => {
  it.each([
    ['', []],
    ['plain', ['plain']],
    ['a$(B)', ['a', { name: 'B' }]],
    ['$(A)b', [{ name: 'A' }, 'b']],
  ])('of %j are %j', (text, expected) => {
    const parts = [...splitReferences(text)]
    expect(parts.map((part) => (part.kind === 'text' ? part.text : { name: part.name }))).toEqual(expected)
  })
})

describe('the space of a command and its environment', () => {
  const space = () => new ExecSpace('app', { stringBytes: 20, totalBytes: 60 })
  /** Twenty bytes, with the NUL and the pointer. */
  const third = 'x'.repeat(11)

  it('has a string of as many bytes as it may have, with its name and its NUL', () => {
    expect(() => space().take('A', 'x'.repeat(17), 'A=')).not.toThrow()
    expect(() => space().take('A', 'x'.repeat(18), 'A=')).toThrow(
      'A of container app takes more than 20 bytes',
    )
  })

  it('is full when all strings together have as many bytes as they may have', () => {
    const full = space()
    for (const what of ['A', 'B', 'C']) full.take(what, third)
    expect(() => full.take('D', '')).toThrow('take more than 60 bytes')
  })

  it('has all the room again that a string took which another replaces', () => {
    const full = space()
    full.take('A', 'x'.repeat(9), 'A=')
    full.release('x'.repeat(9), 'A=')
    for (const what of ['A', 'B', 'C']) full.take(what, third)
    expect(() => full.take('D', '')).toThrow('take more than 60 bytes')
  })

  it('shows a hundred characters of what is too large', () => {
    expect(() => space().take('n'.repeat(100), third.repeat(2))).toThrow(
      `${'n'.repeat(100)} of container app`,
    )
    expect(() => space().take('n'.repeat(101), third.repeat(2))).toThrow(
      `${'n'.repeat(100)}… of container app`,
    )
  })
})

type Variables = readonly { readonly name: string; readonly value: string }[]

const limits = execLimits(4096)

function resolve(
  env: Variables,
  within: ExecLimits = limits,
  services: ReadonlyMap<string, string> = new Map(),
): ReadonlyMap<string, string> {
  const pod = makePod({ containers: [{ name: 'app', env: [...env] }] })
  const [container] = pod.spec.containers
  if (container === undefined) throw new Error('no container')
  return resolveEnvironment({
    container,
    fields: { pod, uid: 'u', nodeName: 'n', hostIps: [], podIps: [] },
    capacity: {},
    objects: noObjects,
    limits: within,
    services,
    fileValue: () => undefined,
  })
}

describe('an environment', () => {
  it('expands with what came before, and lets the last of one name hold', () => {
    const expanded = resolve([
      { name: 'LATE', value: '$(BASE)' },
      { name: 'BASE', value: '/srv' },
      { name: 'DATA', value: '$(BASE)/data' },
      { name: 'BASE', value: '$(BASE)/more' },
    ])
    expect([...expanded]).toEqual([
      ['LATE', '$(BASE)'],
      ['BASE', '/srv/more'],
      ['DATA', '/srv/data'],
    ])
  })

  it('has the variables of Services where nothing else has their names, and expands with them', () => {
    const services = new Map([
      ['DB_SERVICE_HOST', 'db'],
      ['DB_PORT', 'tcp://db:1'],
    ])
    const env = [
      { name: 'URL', value: '$(DB_SERVICE_HOST)' },
      { name: 'DB_PORT', value: '5' },
    ]
    expect(Object.fromEntries(resolve(env, limits, services))).toEqual({
      URL: 'db',
      DB_PORT: '5',
      DB_SERVICE_HOST: 'db',
    })
  })

  it('that doubles itself ends where the kernel takes no more of one variable', () => {
    const doubling = Array.from({ length: 27 }, (_, index) => ({
      name: `A${index}`,
      value: index === 0 ? 'x'.repeat(16) : `$(A${index - 1})$(A${index - 1})`,
    }))
    expect(() => resolve(doubling)).toThrow(
      'environment variable A13 of container app takes more than 131072 bytes',
    )
    expect(resolve(doubling.slice(0, 13)).get('A12')).toHaveLength(16 << 12)
  })

  it('has one variable of as much as the kernel takes, and of no byte more', () => {
    const make = (length: number) => resolve([{ name: 'BIG', value: 'x'.repeat(length) }])
    const most = 131_072 - 'BIG='.length - 1
    expect(make(most).get('BIG')).toHaveLength(most)
    expect(() => make(most + 1)).toThrow('takes more than 131072 bytes')
  })

  it('is bounded as a whole, and a value that another replaces takes no room', () => {
    const large = (name: string) => ({ name, value: 'x'.repeat(100_000) })
    expect(() => resolve(Array.from({ length: 64 }, (_, at) => large(`B${at}`)))).toThrow(
      'environment and command of container app take more than 6291456 bytes',
    )
    expect(resolve(Array.from({ length: 64 }, () => large('B'))).size).toBe(1)
  })

  it('shows the start of a name that is too large itself', () => {
    const make = () => resolve([{ name: 'N'.repeat(200_000), value: '' }])
    expect(make).toThrow(`environment variable ${'N'.repeat(79)}… of container app takes more`)
  })
})

describe('a command', () => {
  const container = { name: 'app', command: ['$(A)', 'b'], args: ['$(A)$(A)', '$$(A)'] }

  it('is expanded with the environment', () => {
    expect(expandCommand(container, new Map([['A', 'x']]), limits)).toEqual({
      command: ['x', 'b'],
      args: ['xx', '$(A)'],
    })
  })

  it.each([
    ['a word', 'x'.repeat(70_000), ['$(A)$(A)'], 'args[0] of container app takes more than 131072 bytes'],
    ['all words', 'x'.repeat(60_000), Array.from({ length: 200 }, () => '$(A)'), 'take more than 6291456'],
  ])('is bounded: %s', (_, value, args, message) => {
    expect(() => expandCommand({ name: 'app', command: [], args }, new Map([['A', value]]), limits)).toThrow(
      message,
    )
  })

  it('of a probe is bounded too', () => {
    const value = 'x'.repeat(100_000)
    expect(expandWords(['$(A)', 'b'], new Map([['A', value]]))).toEqual([value, 'b'])
    expect(
      expandWords(
        Array.from({ length: 70 }, () => '$(A)'),
        new Map([['A', value]]),
      ),
    ).toBeUndefined()
  })
})
