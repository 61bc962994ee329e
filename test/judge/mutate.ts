import type { Json, JsonObject } from '../../src/base/json.ts'
import { isJsonObject } from '../../src/base/json.ts'
import { pick } from '../support/seeded-random.ts'

type Path = readonly (string | number)[]

/** What a wrong or unusual value may be, whatever stood there. */
const anything: readonly Json[] = [
  null,
  '',
  0,
  1,
  -1,
  1.5,
  70_000,
  2 ** 31,
  2 ** 53,
  true,
  false,
  [],
  {},
  [null],
  ['a'],
  { a: 'b' },
  'a',
  'A_B',
  '-a',
  'a b',
  ' a',
  'a/b',
  '/a',
  '../a',
  '..',
  '.',
  '80',
  '1Gi',
  '100m',
  '-1',
  'x'.repeat(64),
  'x'.repeat(300),
]

/** One place of a document, changed. Equal seeds give equal mutations. */
export function mutate(document: JsonObject, random: () => number): JsonObject {
  const paths = [...placesOf(document)]
  if (paths.length === 0) return document
  const path = pick(random, paths)
  const changed = changeAt(document, path, (value, key) => change(value, { key, random }))
  return isJsonObject(changed) ? changed : document
}

function* placesOf(value: Json, path: Path = []): Generator<Path> {
  // What says which kind it is stays.
  if (path.length > 0 && !(path.length === 1 && (path[0] === 'apiVersion' || path[0] === 'kind'))) yield path
  if (Array.isArray(value))
    for (const [index, item] of value.entries()) yield* placesOf(item, [...path, index])
  else if (isJsonObject(value)) {
    for (const [key, item] of Object.entries(value)) yield* placesOf(item, [...path, key])
  }
}

interface Place {
  readonly key: string | number
  readonly random: () => number
}

/** What becomes of the entry: nothing, or one or more entries. */
type Entries = readonly (readonly [key: string | number, value: Json])[]

function change(value: Json, { key, random }: Place): Entries {
  const chosen = random()
  if (chosen < 0.1) return []
  if (chosen < 0.2 && typeof key === 'string') return [[misspelt(key, random), value]]
  if (chosen < 0.25 && typeof key === 'number')
    return [
      [key, value],
      [key + 1, value],
    ]
  if (chosen < 0.3 && isJsonObject(value)) return [[key, { ...value, extra: 'x' }]]
  if (chosen < 0.6) return [[key, twisted(value, random)]]
  // Mostly of the same type, so that more than types is judged.
  const alike = anything.filter((item) => typeOf(item) === typeOf(value))
  return [[key, pick(random, chosen < 0.9 && alike.length > 0 ? alike : anything)]]
}

function typeOf(value: Json): string {
  return Array.isArray(value) ? 'list' : typeof value
}

function misspelt(key: string, random: () => number): string {
  return pick(random, [`${key}s`, key.slice(0, -1), key.toLowerCase(), key.toUpperCase(), `x${key}`, ''])
}

/** A value near the one that stood there. */
function twisted(value: Json, random: () => number): Json {
  if (typeof value === 'number')
    return pick(random, [-value, value * 1000, value + 0.5, String(value), value - 1])
  if (typeof value === 'boolean') return pick(random, [!value, String(value), Number(value)])
  if (typeof value === 'string') {
    return pick(random, [
      ` ${value}`,
      `${value} `,
      value.toUpperCase(),
      value.toLowerCase(),
      `${value}${value}`,
      value.slice(1),
      `-${value}`,
      `${value}.`,
      `${value}/`,
      `${value}:`,
      value.repeat(100),
    ])
  }
  if (Array.isArray(value))
    return pick(random, [[...value, ...value], value.slice(1), { '0': value[0] ?? null }, value[0] ?? null])
  if (isJsonObject(value)) return pick(random, [[value], Object.values(value), {}])
  return 0
}

function changeAt(value: Json, path: Path, make: (value: Json, key: string | number) => Entries): Json {
  const [step, ...rest] = path
  if (step === undefined) return value
  const replaced = (item: Json): Entries => {
    if (rest.length === 0) return make(item, step)
    return [[step, changeAt(item, rest, make)]]
  }
  if (Array.isArray(value)) {
    return value.flatMap((item: Json, index) =>
      index === step ? replaced(item).map(([, changed]) => changed) : [item],
    )
  }
  if (!isJsonObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, item]) =>
      key === step ? replaced(item).map(([name, changed]) => [String(name), changed]) : [[key, item]],
    ),
  )
}
