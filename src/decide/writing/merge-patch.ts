import type { Json, JsonObject } from '../../base/json.ts'
import { isJsonObject } from '../../base/json.ts'

/** Applies a JSON merge patch (RFC 7386). */
export function mergePatch(current: Json | undefined, patch: Json): Json {
  if (!isJsonObject(patch)) return patch
  const merged = new Map<string, Json>(isJsonObject(current) ? Object.entries(current) : [])
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) merged.delete(key)
    else merged.set(key, mergePatch(merged.get(key), value))
  }
  return toObject(merged)
}

function toObject(entries: ReadonlyMap<string, Json>): JsonObject {
  return Object.fromEntries(entries)
}
