import type { Json, JsonObject } from '../../base/json.ts'
import { isJsonObject, sameData } from '../../base/json.ts'
import { fieldsOf, pathsOf, setOf, valueAt } from './managed-fields.ts'
import { metadataOf } from './prepare-object.ts'

export interface Updater {
  /** The field manager: the request's `fieldManager`, or the beginning of its User-Agent. */
  readonly manager: string
  /** RFC 3339. */
  readonly time: string
}

/**
 * An object after a write other than apply, with the managers of its fields: a writer owns the fields it changes
 * (`structured-merge-diff/v6/merge/update.go`, Updater.Update). Only applied objects have managers here; Kubernetes
 * records every writer of other objects too.
 */
export function trackUpdate(before: JsonObject, after: JsonObject, { manager, time }: Updater): JsonObject {
  const given = metadataOf(after)['managedFields'] ?? metadataOf(before)['managedFields']
  const entries = Array.isArray(given) ? given.filter((entry: Json) => isEntry(entry)) : []
  if (entries.length === 0) return withManagers(after, [])
  const changed = pathsOf(fieldsOf(after)).filter(
    (path) => !sameData(valueAt(before, path), valueAt(after, path)),
  )
  const isChanged = (path: readonly string[]): boolean => changed.some((other) => sameData(other, path))
  const isOwn = (entry: JsonObject): boolean =>
    entry['manager'] === manager && entry['operation'] === 'Update'
  const kept = entries.flatMap((entry: JsonObject) => {
    const fields = isJsonObject(entry['fieldsV1']) ? entry['fieldsV1'] : {}
    const left = pathsOf(fields).filter((path) => valueAt(after, path) !== undefined && !isChanged(path))
    const paths = isOwn(entry) ? left.concat(changed) : left
    const set = setOf(paths)
    if (paths.length === 0) return []
    return sameData(set, fields) ? [entry] : [{ ...entry, ...(isOwn(entry) && { time }), fieldsV1: set }]
  })
  const isNew = changed.length > 0 && !kept.some((entry) => isOwn(entry))
  const own = {
    manager,
    operation: 'Update',
    apiVersion: after['apiVersion'] ?? 'v1',
    time,
    fieldsType: 'FieldsV1',
    fieldsV1: setOf(changed),
  }
  return withManagers(after, isNew ? [...kept, own] : kept)
}

function isEntry(entry: Json): entry is JsonObject {
  return isJsonObject(entry) && isJsonObject(entry['fieldsV1'])
}

function withManagers(object: JsonObject, entries: readonly JsonObject[]): JsonObject {
  const { managedFields: _before, ...metadata } = metadataOf(object)
  return {
    ...object,
    metadata: entries.length === 0 ? metadata : { ...metadata, managedFields: entries },
  }
}
