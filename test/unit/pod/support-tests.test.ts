import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { listSupportTests } from '../../../docs/support-doc.ts'
import { objectSchemas } from '../../../src/pod/schema/object-schema.ts'
import { podSchema } from '../../../src/pod/schema/pod-schema.ts'
import type { AnyType, Fields } from '../../../src/pod/schema/types.ts'

const testDirectory = join(import.meta.dirname, '../..')
const tests = listSupportTests()

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
  [podSchema, ...Object.values(objectSchemas)].flatMap((schema) => Array.from(supportedFields(schema))),
)

/** What every pod of the tests is made with. */
const shellPods = readFileSync(join(testDirectory, 'support/shell-pods.ts'), 'utf8')
const sources = new Map(
  readdirSync(join(testDirectory, 'e2e')).map((name) => [
    name.replace('.test.ts', ''),
    readFileSync(join(testDirectory, 'e2e', name), 'utf8'),
  ]),
)

interface Source {
  /** From its `it` to the next. */
  readonly test: string
  /** What stands outside of all tests: builders of manifests, constants. */
  readonly shared: string
}

/** A test's text by its title; undefined where there is no such test, or more than one. */
function findTest(file: string, title: string): Source | undefined {
  const parts = (sources.get(file) ?? '').split(/^(?=\s*(?:it|describe\w*)(?:\.\w+(?:\([^)]*\))?)*[(<])/mu)
  const isTest = (part: string): boolean => /^\s*it\b/u.test(part)
  const found = parts.filter((part) => isTest(part) && unquoted(part).includes(`'${title}'`))
  const [test] = found
  if (test === undefined || found.length > 1) return undefined
  return { test, shared: parts.filter((part) => !isTest(part)).join('\n') }
}

function unquoted(text: string): string {
  return text.replaceAll(/"([^"\n]*'[^"\n]*)"/gu, "'$1'")
}

describe('docs/support-tests.ts', () => {
  it('names a test for every field that is supported', () => {
    expect([...supported].filter((field) => !tests.has(field))).toEqual([])
  })

  it('names none for a field that isn’t', () => {
    expect([...tests.keys()].filter((field) => !supported.has(field))).toEqual([])
  })

  it.each([...tests].flatMap(([field, list]) => list.map((test) => ({ field, ...test }))))(
    'names one that is there and sets it: $field, $file',
    ({ field, file, title }) => {
      const source = findTest(file, title)
      expect(source, `test/e2e/${file}.test.ts has one test called ${JSON.stringify(title)}`).toBeDefined()
      const name = field.split('.')[1] ?? ''
      const texts = [source?.test ?? '', source?.shared ?? '', shellPods]
      const isSet = texts.some((text) => new RegExp(`\\b${name}\\b`, 'u').test(text))
      expect(isSet, `that test sets ${field}`).toBe(true)
    },
  )
})
