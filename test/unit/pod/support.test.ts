import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { CoreField } from '../../../tools/core-fields.ts'
import { parseCoreFields } from '../../../tools/core-fields.ts'
import { supportDoc } from '../../../tools/support-doc.ts'
import { objectKinds } from '../../../src/pod/objects/object-kinds.ts'
import { podSchema } from '../../../src/pod/schema/pod-schema.ts'
import type { AnyType, Fields } from '../../../src/pod/schema/types.ts'

const root = join(import.meta.dirname, '../../..')
const core = parseCoreFields(readFileSync(join(root, 'test/fixtures/core-v1-fields.json'), 'utf8'))

interface SchemaType {
  readonly name: string
  readonly fields: Fields
}

/** Every object type of the schema, those of refused and ignored fields included. */
function schemaTypes(type: AnyType, found: SchemaType[] = []): readonly SchemaType[] {
  if (type.kind === 'list') schemaTypes(type.item, found)
  if (type.kind === 'map') schemaTypes(type.value, found)
  if (type.kind === 'object' && !found.some(({ fields }) => fields === type.fields)) {
    found.push({ name: type.name, fields: type.fields })
    for (const field of Object.values<Fields[string]>(type.fields)) schemaTypes(field.type, found)
  }
  return found
}

const types = [podSchema, ...Object.values(objectKinds).map(({ schema }) => schema)].flatMap((schema) =>
  schemaTypes(schema),
)
/** Metadata is no part of the list of core types. */
const listed = types.filter(({ name }) => name !== 'ObjectMeta' && name !== 'OwnerReference')
const allFields = listed.flatMap(({ name, fields }) =>
  Object.entries(fields)
    .filter(([field]) => field !== 'metadata')
    .map(([field, definition]) => ({ name: `${name}.${field}`, type: name, field, definition })),
)

/** Scalars, and words, by their names in the API. */
function scalarKinds(base: string): readonly string[] {
  switch (base) {
    case 'Quantity':
      return ['quantity']
    case 'IntOrString':
      return ['intOrString']
    case 'bool':
    case 'int32':
    case 'int64':
      return [base]
    default:
      return ['string']
  }
}

function describeShape(type: AnyType): string {
  if (type.kind === 'list') return `list of ${describeShape(type.item)}`
  if (type.kind === 'map') return `map of ${describeShape(type.value)}`
  return type.kind === 'object' ? type.name : type.kind
}

function describeCore({ base, shape }: CoreField): readonly string[] {
  const bases = core.types.has(base) ? [base] : scalarKinds(base)
  return bases.map((name) => (shape === 'single' ? name : `${shape} of ${name}`))
}

describe('the schema', () => {
  it.each(listed)('of $name has the fields of the API and no others', ({ name, fields }) => {
    const own = Object.keys(fields).filter((field) => field !== 'metadata')
    expect(own.sort()).toEqual([...(core.types.get(name)?.keys() ?? [])].sort())
  })

  it('looks into every type that a supported field leads to', () => {
    const opaque = allFields.filter(
      ({ definition }) =>
        definition.support.kind === 'supported' && describeShape(definition.type).includes('any'),
    )
    expect(opaque.map(({ name }) => name)).toEqual([])
  })

  it('gives each field the type it has in the API', () => {
    const wrong = allFields.flatMap(({ name, type, field, definition }) => {
      const coreField = core.types.get(type)?.get(field)
      const shape = describeShape(definition.type)
      // What isn't looked into has no type here.
      if (coreField === undefined || shape.includes('any')) return []
      const expected = describeCore(coreField)
      return expected.includes(shape) ? [] : [`${name}: ${shape}, not ${expected.join(' or ')}`]
    })
    expect(wrong).toEqual([])
  })

  it('requires what the API requires', () => {
    const missed = allFields.filter(
      ({ type, field, definition }) =>
        definition.support.kind === 'supported' &&
        core.types.get(type)?.get(field)?.isOptional === false &&
        definition.presence !== 'required',
    )
    expect(missed.map(({ name }) => name)).toEqual([])
  })

  it('knows the words that the API knows', () => {
    const wrong = allFields.flatMap(({ name, type, field, definition }) => {
      const coreField = core.types.get(type)?.get(field)
      const words = coreField === undefined ? undefined : core.enums.get(coreField.base)
      if (words === undefined || definition.type.kind !== 'string' || coreField?.base === 'string') return []
      const own = definition.type.values
      if (own === undefined || [...own].sort().join() === [...words].sort().join()) return []
      return [`${name}: ${own.join()}, not ${words.join()}`]
    })
    // Resources to resize are cpu and memory, whatever other resources there are.
    expect(wrong.filter((line) => !line.startsWith('ContainerResizePolicy.resourceName'))).toEqual([])
  })

  it('gives a reason for every field that it doesn’t support', () => {
    const silent = [...allFields].filter(
      ({ definition: { support } }) => support.kind !== 'supported' && support.reason.length < 5,
    )
    expect(silent).toEqual([])
  })
})

describe('docs/SUPPORT.md', () => {
  /** The fields of a type that has no effect as a whole stand in one line. */
  const isInLine = (section: string, field: string): boolean =>
    /^(?:Refused|Without effect) with .*$/mu.exec(section)?.[0].includes(`\`${field}\``) === true
  const text = readFileSync(join(root, 'docs/SUPPORT.md'), 'utf8')

  it('is what the schema says (`npm run generate` writes it)', () => {
    expect(text).toBe(supportDoc(core))
  })

  it('has every type and every field of the API', () => {
    const missing = [...core.types].flatMap(([name, fields]) => {
      const start = text.indexOf(`\n## ${name}\n`)
      const end = text.indexOf('\n## ', start + 1)
      const section = start < 0 ? '' : text.slice(start, end < 0 ? undefined : end)
      return [...fields.keys()]
        .filter((field) => !section.includes(`\n| \`${field}\` | `) && !isInLine(section, field))
        .map((field) => `${name}.${field}`)
    })
    expect(missing.filter((name) => !name.startsWith('PodList.'))).toEqual([])
  })
})
