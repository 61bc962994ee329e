import { describe, expect, it } from 'vitest'
import { expandEnvironment, expandReferences } from '../../../src/translate/environment.ts'

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
    expect(expandReferences(text, environment)).toBe(expected)
  })
})

describe('expandEnvironment', () => {
  it('expands with what came before, and lets the last of one name hold', () => {
    const expanded = expandEnvironment([
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
})
