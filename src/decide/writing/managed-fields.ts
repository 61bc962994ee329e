import type { Json, JsonObject } from '../../base/json.ts'
import { isJsonObject, sameData } from '../../base/json.ts'
import { mergeKeyOf } from './strategic-merge.ts'

/** A field's path as meta/v1 FieldsV1 writes its steps: `f:` and a name, `k:` and the key of a list's item. */
export type ManagedPath = readonly string[]

/**
 * The set of fields in a manifest (`structured-merge-diff/v6/fieldpath`, serialize.go): lists that are merged by a key
 * by their items, all others as a whole.
 */
export function fieldsOf(manifest: JsonObject): JsonObject {
  const { apiVersion: _apiVersion, kind: _kind, status: _status, ...rest } = manifest
  const metadata = isJsonObject(rest['metadata']) ? rest['metadata'] : {}
  const shown = ['labels', 'annotations', 'finalizers', 'ownerReferences'].flatMap((key) =>
    metadata[key] === undefined ? [] : [[key, metadata[key]]],
  )
  return fieldsOfObject({ ...rest, metadata: Object.fromEntries(shown) })
}

function fieldsOfObject(object: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(object).flatMap(([key, value]) => {
      // An empty object sets nothing, except where it is a choice: `emptyDir: {}`.
      if (key === 'metadata' && isJsonObject(value) && Object.keys(value).length === 0) return []
      return [[`f:${key}`, fieldsOfValue(key, value)]]
    }),
  )
}

function fieldsOfValue(key: string, value: Json): JsonObject {
  if (isJsonObject(value)) return fieldsOfObject(value)
  if (!Array.isArray(value)) return {}
  const items: readonly Json[] = value
  const mergeKey = mergeKeyOf(key, items)
  if (mergeKey === undefined) return {}
  return Object.fromEntries(
    items.flatMap((item) => {
      const id = isJsonObject(item) ? item[mergeKey] : undefined
      if (!isJsonObject(item) || id === undefined) return []
      return [[`k:${JSON.stringify({ [mergeKey]: id })}`, { '.': {}, ...fieldsOfObject(item) }]]
    }),
  )
}

/** The paths of a set, without those that have others below them. */
export function pathsOf(fields: JsonObject): readonly ManagedPath[] {
  return Object.entries(fields).flatMap(([step, below]) => {
    const inner = isJsonObject(below) ? pathsOf(below) : []
    return inner.length === 0 ? [[step]] : inner.map((path) => [step].concat(path))
  })
}

/** The set of paths. */
export function setOf(paths: readonly ManagedPath[]): JsonObject {
  const names = new Set(paths.flatMap(([step]) => (step === undefined ? [] : [step])))
  return Object.fromEntries(
    [...names].map((name) => [
      name,
      setOf(paths.flatMap(([step, ...rest]) => (step === name && rest.length > 0 ? [rest] : []))),
    ]),
  )
}

export function hasPath(fields: JsonObject, [step, ...rest]: ManagedPath): boolean {
  if (step === undefined) return true
  const below = fields[step]
  return isJsonObject(below) && hasPath(below, rest)
}

/** The value at a path; undefined without one. */
export function valueAt(value: Json | undefined, [step, ...rest]: ManagedPath): Json | undefined {
  if (step === undefined || step === '.') return value
  if (step.startsWith('f:')) return isJsonObject(value) ? valueAt(value[step.slice(2)], rest) : undefined
  return valueAt(Array.isArray(value) ? value.find((item: Json) => isItem(item, step)) : undefined, rest)
}

/** A value without the field at a path. */
export function withoutPath(value: Json, [step, ...rest]: ManagedPath): Json {
  if (step === undefined) return value
  if (step.startsWith('k:')) {
    if (!Array.isArray(value)) return value
    const isWhole = rest.length === 0 || rest[0] === '.'
    return value.flatMap((item: Json) => {
      if (!isItem(item, step)) return [item]
      return isWhole ? [] : [withoutPath(item, rest)]
    })
  }
  const key = step.slice(2)
  if (!isJsonObject(value)) return value
  const below = value[key]
  if (below === undefined) return value
  if (rest.length > 0) return { ...value, [key]: withoutPath(below, rest) }
  return Object.fromEntries(Object.entries(value).filter(([name]) => name !== key))
}

/** `.spec.containers[name="main"].image`, the form in messages about conflicts. */
export function formatManagedPath(path: ManagedPath): string {
  return path
    .map((step) => {
      if (step === '.') return ''
      if (step.startsWith('f:')) return `.${step.slice(2)}`
      const id = Object.entries(keyOf(step)).map(([key, value]) => `${key}=${JSON.stringify(value)}`)
      return `[${id.join(',')}]`
    })
    .join('')
}

function isItem(item: Json, step: string): boolean {
  return isJsonObject(item) && Object.entries(keyOf(step)).every(([key, id]) => sameData(item[key], id))
}

/** Also for a step that a client sent back. */
function keyOf(step: string): JsonObject {
  try {
    const key: Json = JSON.parse(step.slice(2))
    return isJsonObject(key) ? key : {}
  } catch {
    // A key that doesn't occur.
    return { '': '' }
  }
}
