import type { Json, JsonObject } from '../../../src/base/json.ts'
import { isJsonObject } from '../../../src/base/json.ts'

/** The manifest that tests change a little. */
export const sampleManifest: JsonObject = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web' },
  spec: { containers: [{ name: 'main', image: 'busybox:1.36' }] },
}

/** A copy with the value at a path like `spec.containers.0.image` replaced; undefined takes the field out. */
export function withField(manifest: JsonObject, path: string, value: Json | undefined): JsonObject {
  const changed = setField(manifest, path.split('.'), value)
  if (!isJsonObject(changed)) throw new Error(`no object left at ${path}`)
  return changed
}

function setField(at: Json | undefined, [step, ...rest]: readonly string[], value: Json | undefined): Json {
  if (step === undefined) return value ?? null
  if (Array.isArray(at) || (at === undefined && /^\d+$/.test(step))) {
    const list: Json[] = Array.isArray(at) ? [...at] : []
    list[Number(step)] = setField(list[Number(step)], rest, value)
    return list
  }
  const object: Record<string, Json> = isJsonObject(at) ? { ...at } : {}
  if (rest.length === 0 && value === undefined) delete object[step]
  else object[step] = setField(object[step], rest, value)
  return object
}

/** The sample with several fields replaced. */
export function withFields(fields: Readonly<Record<string, Json | undefined>>): JsonObject {
  return Object.entries(fields).reduce<JsonObject>(
    (manifest, [path, value]) => withField(manifest, path, value),
    sampleManifest,
  )
}
