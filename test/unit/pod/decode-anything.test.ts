import { describe, expect, it } from 'vitest'
import type { Json, JsonObject } from '../../../src/base/json.ts'
import { isJsonObject } from '../../../src/base/json.ts'
import type { FieldValidation } from '../../../src/pod/schema/check-value.ts'
import { decodeDocuments } from '../../../src/pod/decode/decode-documents.ts'
import { decodeObject, decodePod } from '../../../src/pod/decode/decode-pod.ts'
import { isObjectKind, objectKinds } from '../../../src/pod/objects/object-kinds.ts'
import { slowness } from '../../support/slowness.ts'
import { podSchema } from '../../../src/pod/schema/pod-schema.ts'
import type { AnyType, Fields } from '../../../src/pod/schema/types.ts'

/** A value with every field of the schema that podd takes. */
function sampleOf(type: AnyType): Json {
  switch (type.kind) {
    case 'object': {
      const fields: Fields = type.fields
      const taken = Object.entries(fields).filter(([, { support }]) => support.kind === 'supported')
      return Object.fromEntries(taken.map(([key, field]) => [key, sampleOf(field.type)]))
    }
    case 'list':
      return [sampleOf(type.item)]
    case 'map':
      return { key: sampleOf(type.value) }
    case 'bool':
      return true
    case 'string':
      return type.values?.find((word) => word !== '') ?? 'a'
    default:
      return 1
  }
}

type Change = (place: Json) => readonly Json[]

/** What else is kept of an object in which something is changed. */
type Beside = (object: JsonObject) => JsonObject

/** Copies of a value, each with what stands in one place of it changed. */
function* variantsOf(value: Json, change: Change, beside: Beside): Generator<Json> {
  yield* change(value)
  if (Array.isArray(value))
    for (const variant of variantsOf(value[0] ?? null, change, beside)) yield [variant]
  if (!isJsonObject(value)) return
  for (const [key, item] of Object.entries(value)) {
    // The other containers have the same fields.
    if (key === 'initContainers') continue
    for (const variant of variantsOf(item, change, beside)) yield { ...beside(value), [key]: variant }
  }
}

const everything: Beside = (object) => object
const needed = new Set([
  'apiVersion',
  'kind',
  'metadata',
  'spec',
  'containers',
  'name',
  'image',
  'mountPath',
  'handler',
])
/** What a document can't do without: one with every field has sources that exclude each other, and is never good. */
const theNeeded: Beside = (object) =>
  Object.fromEntries(
    Object.entries(object).flatMap(([key, item]) => (needed.has(key) ? [[key, leastOf(item)]] : [])),
  )

function leastOf(value: Json): Json {
  if (Array.isArray(value)) return value.map((item) => leastOf(item))
  return isJsonObject(value) ? theNeeded(value) : value
}

const empty: Change = () => ['']
const replaced: Change = () => ['', null, [], {}, 'constructor', 0]

const mistyped: Change = (place) => {
  if (!isJsonObject(place)) return []
  const entries = Object.entries(place)
  return entries.map(([key]) =>
    Object.fromEntries(entries.map(([name, value]) => [name === key ? `${name}x` : name, value])),
  )
}

const decodeAny = (kind: string, manifest: JsonObject, fieldValidation: FieldValidation) =>
  isObjectKind(kind) ? decodeObject(kind, manifest, fieldValidation) : decodePod(manifest, fieldValidation)

const schemas = [
  ['Pod', podSchema],
  ...Object.entries(objectKinds).map(([kind, { schema }]) => [kind, schema] as const),
] as const

describe.each(schemas)('a %s', (kind, schema) => {
  it.each([
    ['anything for a field', replaced, theNeeded, 'Strict'],
    ['an empty word for a field, beside all others', empty, everything, 'Strict'],
    ['a field that is not known', mistyped, theNeeded, 'Strict'],
    ['a field that is not known', mistyped, theNeeded, 'Warn'],
  ] as const)(
    'with %s is taken or complained of',
    (_what, change, beside, mode) => {
      const variants = [...variantsOf(sampleOf(schema), change, beside)].filter((variant) =>
        isJsonObject(variant),
      )
      const wrong = variants.filter((manifest) => {
        const { accepted, problems } = decodeAny(kind, manifest, mode)
        return problems.some(({ severity }) => severity === 'error') !== (accepted === undefined)
      })
      expect(wrong).toEqual([])
      expect(variants.length).toBeGreaterThan(5)
    },
    300_000 * slowness,
  )
})

/** Documents before and behind the bad one. */
const good = [
  'apiVersion: v1\nkind: Pod\nmetadata: {name: first}\nspec: {containers: [{name: a, image: b}]}\n',
  'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: last}\n',
] as const

describe('an empty word, or a typo that only warns', () => {
  it.each([
    [
      'apiVersion: ""\nkind: Pod\nmetadata: {name: x}\nspec: {containers: [{name: a, image: b}]}\n',
      'apiVersion',
    ],
    ['apiVersion: ""\nkind: ConfigMap\nmetadata: {name: x}\n', 'apiVersion'],
    ['apiVersion: ""\nkind: List\nitems: []\n', 'apiVersion'],
    [
      'apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {os: {name: ""}, containers: [{name: a, image: b}]}\n',
      'spec.os.name',
    ],
    [
      'apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: [{name: a, imgae: b}]}\n',
      'spec.containers[0].image',
    ],
    [
      'apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {container: [{name: a, image: b}]}\n',
      'spec.containers',
    ],
    [
      'apiVersion: v1\nkind: Pod\nmetadta: {name: x}\nspec: {containers: [{name: a, image: b}]}\n',
      'metadata.name',
    ],
  ])('costs its document alone: %j', async (text, field) => {
    const documents = [good[0], text, good[1]].join('---\n')
    const result = await decodeDocuments(documents, { path: 'p.yaml', fieldValidation: 'Warn' })
    expect(result.documents).toHaveLength(2)
    expect(result.problems.filter(({ severity }) => severity === 'error')).toEqual([
      expect.objectContaining({
        field,
        message: 'Required value',
        place: expect.objectContaining({ line: expect.any(Number) }),
      }),
    ])
  })
})
