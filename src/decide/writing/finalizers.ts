import type { JsonObject } from '../../base/json.ts'
import { isJsonObject } from '../../base/json.ts'

/** What holds an object back that is deleted. */
export function finalizersOf({ metadata }: JsonObject): readonly string[] {
  const finalizers = isJsonObject(metadata) ? metadata['finalizers'] : undefined
  return Array.isArray(finalizers) ? finalizers.filter((name) => typeof name === 'string') : []
}

/** Whether an object was deleted and nothing holds it back any more. */
export function isReleased(manifest: JsonObject): boolean {
  const { metadata } = manifest
  const isDeleted = isJsonObject(metadata) && typeof metadata['deletionTimestamp'] === 'string'
  return isDeleted && finalizersOf(manifest).length === 0
}
