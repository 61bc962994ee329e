/** What JSON can hold. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }
export type JsonObject = { readonly [key: string]: Json }

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** What a path of keys leads to; undefined where it leads through something that is no object. */
export function jsonAt(value: unknown, ...path: readonly string[]): Json | undefined {
  const [key, ...rest] = path
  if (!isJsonObject(value) || key === undefined) return undefined
  return rest.length === 0 ? value[key] : jsonAt(value[key], ...rest)
}

/** An empty object in the place of anything else. */
export function objectOrEmpty(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {}
}

/** An empty list in the place of anything else. */
export function listOrEmpty(value: unknown): readonly Json[] {
  const isList = (list: unknown): list is readonly Json[] => Array.isArray(list)
  return isList(value) ? value : []
}

/** Of an object's texts, the entries that are texts. */
export function textEntries(value: Json | undefined): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(objectOrEmpty(value)).flatMap(([key, text]) =>
      typeof text === 'string' ? [[key, text]] : [],
    ),
  )
}

/** What a JSON text says; undefined for a text that is none, and for none at all. */
export function parseJson(text: string | undefined): Json | undefined {
  if (text === undefined) return undefined
  try {
    const value: Json = JSON.parse(text)
    return value
  } catch {
    // The caller says what a text means that is no JSON.
    return undefined
  }
}

/** JSON text with the keys of every object sorted: equal values give equal text. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item)).join(',')}]`
  if (!isJsonObject(value)) return JSON.stringify(value) ?? 'null'
  const keys = Object.keys(value)
    .filter((key) => value[key] !== undefined)
    .sort()
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key])}`).join(',')}}`
}

function isCompound(value: unknown): boolean {
  return typeof value === 'object' && value !== null
}

/** Deep equality of plain data; absent and undefined are the same. */
export function sameData(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (Array.isArray(a) && Array.isArray(b))
    return a.length === b.length && a.every((item, index) => sameData(item, b[index]))
  if (!isJsonObject(a) || !isJsonObject(b))
    return !isCompound(a) && !isCompound(b) && canonicalJson(a) === canonicalJson(b)
  const hasSame = (key: string): boolean =>
    a[key] === undefined || b[key] === undefined ? a[key] === b[key] : sameData(a[key], b[key])
  return Object.keys(a).every(hasSame) && Object.keys(b).every((key) => Object.hasOwn(a, key) || hasSame(key))
}

/** A copy as JSON has it: without what is undefined; null for nothing. */
export function asJson(value: unknown): Json {
  const json: Json = JSON.parse(JSON.stringify(value ?? null))
  return json
}

export function objectsAt(object: unknown, key: string): readonly JsonObject[] {
  return listOrEmpty(jsonAt(object, key)).filter((item) => isJsonObject(item))
}

export function objectAt(object: unknown, key: string): JsonObject | undefined {
  const value = jsonAt(object, key)
  return isJsonObject(value) ? value : undefined
}

/** Strings, numbers and booleans as text; undefined for anything else. */
export function textAt(object: JsonObject, key: string): string | undefined {
  const value = object[key]
  return value === undefined || value === null || typeof value === 'object' ? undefined : String(value)
}

export function textsAt(object: JsonObject, key: string): readonly string[] {
  return listOrEmpty(object[key]).map((item) => (typeof item === 'string' ? item : JSON.stringify(item)))
}

/** `key<separator>value` for each entry, sorted. */
export function entriesOf(object: JsonObject | undefined, separator: string): readonly string[] {
  return Object.entries(object ?? {})
    .map(([key, value]) => `${key}${separator}${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .sort()
}

export function mapValues<Value>(
  values: Readonly<Record<string, Value>>,
  change: (value: Value) => Value,
): Record<string, Value> {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, change(value)]))
}
