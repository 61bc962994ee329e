import type { Json, JsonObject } from '../../base/json.ts'
import { isJsonObject } from '../../base/json.ts'

/** Reads JSON from the server with checked types. */

export function objectsAt(object: JsonObject, key: string): readonly JsonObject[] {
  const value = object[key]
  return isList(value) ? value.filter((item) => isJsonObject(item)) : []
}

export function objectAt(object: JsonObject, key: string): JsonObject | undefined {
  const value = object[key]
  return isJsonObject(value) ? value : undefined
}

/** Strings, numbers and booleans as text; undefined for anything else. */
export function textAt(object: JsonObject, key: string): string | undefined {
  const value = object[key]
  return value === undefined || value === null || typeof value === 'object' ? undefined : String(value)
}

export function textsAt(object: JsonObject, key: string): readonly string[] {
  const value = object[key]
  return isList(value) ? value.map((item) => (typeof item === 'string' ? item : JSON.stringify(item))) : []
}

/** `key<separator>value` for each entry, sorted. */
export function entriesOf(object: JsonObject | undefined, separator: string): readonly string[] {
  return Object.entries(object ?? {})
    .map(([key, value]) => `${key}${separator}${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .sort()
}

function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value)
}
