import { describe, expect, it } from 'vitest'
import type { Json } from '../../../src/base/json.ts'
import { isJsonObject } from '../../../src/base/json.ts'
import { readState } from '../../../src/base/state-file.ts'
import type { Migration } from '../../../src/base/state-file.ts'

/** Version 1 was a list, 2 has it in `items`, 3 counts them, too. */
const migrations: readonly Migration[] = [
  (content) => ({ version: 2, items: content }),
  (content) => {
    if (!isJsonObject(content) || !Array.isArray(content['items'])) throw new Error('no items')
    return { ...content, count: content['items'].length }
  },
]

const read = (content: Json) => readState(JSON.stringify(content), migrations)

describe('readState', () => {
  it.each([
    ['the first version, which had no number', ['a'], { version: 3, items: ['a'], count: 1 }],
    ['a version in the middle', { version: 2, items: ['a'] }, { version: 3, items: ['a'], count: 1 }],
    ['the current one', { version: 3, items: [], count: 0 }, { version: 3, items: [], count: 0 }],
    [
      'a field that it does not know',
      { version: 2, items: [], more: { deep: 1 } },
      { version: 3, items: [], count: 0, more: { deep: 1 } },
    ],
  ])('reads %s', (_, content, expected) => {
    expect(read(content)).toEqual({ kind: 'current', content: expected })
  })

  it('knows a newer version, and touches nothing of it', () => {
    expect(read({ version: 4, items: 'otherwise' })).toEqual({
      kind: 'newer',
      message: 'it has version 4, and this podd reads up to 3',
    })
  })

  it.each([
    ['half a file', '{"version": 2, "it'],
    ['nothing', ''],
    ['a version that is no number', '{"version": "3"}'],
    ['a version before the first', '{"version": 0}'],
    ['what its version did not write', '{"version": 2}'],
    ['no object', '"text"'],
  ])('does not read %s', (_, text) => {
    expect(readState(text, migrations).kind).toBe('unreadable')
  })

  it('does not read what is no object where there is one version only', () => {
    expect(readState('[1]', []).kind).toBe('unreadable')
  })
})
