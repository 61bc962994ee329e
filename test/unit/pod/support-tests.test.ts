import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { listSupportTests, parseSupportTests } from '../../../tools/support-tests.ts'
import { objectKinds } from '../../../src/pod/objects/object-kinds.ts'
import { podSchema } from '../../../src/pod/schema/pod-schema.ts'
import type { AnyType, Fields } from '../../../src/pod/schema/types.ts'

const tests = listSupportTests()
const proven = new Set(tests.flatMap(({ fields }) => fields))

/** `Type.field` of all that is supported, looked for below supported fields only. */
function supportedFields(type: AnyType, found = new Set<string>()): ReadonlySet<string> {
  if (type.kind === 'list') return supportedFields(type.item, found)
  if (type.kind === 'map') return supportedFields(type.value, found)
  if (type.kind !== 'object') return found
  const fields: Fields = type.fields
  for (const [name, field] of Object.entries(fields)) {
    const key = `${type.name}.${name}`
    if (field.support.kind !== 'supported' || found.has(key)) continue
    found.add(key)
    supportedFields(field.type, found)
  }
  return found
}

const supported = new Set(
  [podSchema, ...Object.values(objectKinds).map(({ schema }) => schema)].flatMap((schema) =>
    Array.from(supportedFields(schema)),
  ),
)

/** What every pod of the tests is made with. */
const shellPods = readFileSync(join(import.meta.dirname, '../../support/shell-pods.ts'), 'utf8')

describe('the e2e tests that call proves', () => {
  it('prove every field that is supported', () => {
    expect([...supported].filter((field) => !proven.has(field))).toEqual([])
  })

  it('prove no field that isn’t', () => {
    expect([...proven].filter((field) => !supported.has(field))).toEqual([])
  })

  it('have each an id of its own', () => {
    const ids = tests.map(({ file, id }) => `${file}#${id}`)
    expect(ids.filter((id, at) => ids.indexOf(id) !== at)).toEqual([])
  })

  it.each(tests)('set what they prove: $file#$id', ({ fields, text, shared }) => {
    const isSet = (field: string): boolean =>
      [text, shared, shellPods].some((part) =>
        new RegExp(`\\b${field.slice(field.indexOf('.') + 1)}\\b`, 'u').test(part),
      )
    expect(fields.filter((field) => !isSet(field))).toEqual([])
  })
})

describe('parseSupportTests', () => {
  const text = `const shared = { subPath: 1 }
describe('things', () => {
  it.each([1])('one (%s)', proves('first', 'Volume: name hostPath', 'Pod: spec'), () => {
    hostPath()
  })
  it('other', () => {})
})`

  it('reads the id and the fields, and what the test does without them', () => {
    const [test, ...others] = parseSupportTests('things', text)
    expect(others).toEqual([])
    expect(test).toMatchObject({ file: 'things', id: 'first' })
    expect(test?.fields).toEqual(['Volume.name', 'Volume.hostPath', 'Pod.spec'])
    expect(test?.text).toContain('hostPath()')
    expect(test?.text).not.toContain('name')
    expect(test?.text).not.toContain('other')
    expect(test?.shared).toContain('subPath')
  })

  it.each([
    ["it('a', proves(id, 'Pod: spec'), () => {})", 'an id that is no literal'],
    ["it('a', proves('a', 'Pod.spec'), () => {})", 'fields in another form'],
    ["describe('a', proves('a', 'Pod: spec'), () => {})", 'a suite'],
    ["it('a', proves('a', 'Pod: spec'), () => {\n proves('b', 'Pod: kind') })", 'two of them'],
  ])('throws on %s', (bad) => {
    expect(() => parseSupportTests('things', bad)).toThrow(/things: a call of proves/u)
  })
})
