import type { JsonObject } from '../../base/json.ts'
import { isJsonObject } from '../../base/json.ts'

/** The finalizers of an object. */
export function finalizersOf({ metadata }: JsonObject): readonly string[] {
  const finalizers = isJsonObject(metadata) ? metadata['finalizers'] : undefined
  return Array.isArray(finalizers) ? finalizers.filter((name) => typeof name === 'string') : []
}

/** Whether an object was deleted and has no finalizers left. */
export function isReleased(manifest: JsonObject): boolean {
  const { metadata } = manifest
  const isDeleted = isJsonObject(metadata) && typeof metadata['deletionTimestamp'] === 'string'
  return isDeleted && finalizersOf(manifest).length === 0
}
