import type { Json, JsonObject } from '../../base/json.ts'
import { isJsonObject, sameData } from '../../base/json.ts'
import {
  fieldsOf,
  formatManagedPath,
  hasPath,
  pathsOf,
  setOf,
  valueAt,
  withoutPath,
} from './managed-fields.ts'
import { strategicMerge } from './strategic-merge.ts'

/** A field that another manager has applied with another value. */
export interface ApplyConflict {
  readonly manager: string
  /** `.data.a` */
  readonly field: string
}

export interface Apply {
  readonly applied: JsonObject
  readonly manager: string
  /** Takes fields over from other managers. */
  readonly force: boolean
  /** RFC 3339. */
  readonly time: string
}

interface Owner {
  readonly manager: string
  readonly fields: JsonObject
  readonly entry: JsonObject
}

/**
 * What a server-side apply makes of an object: the manifest merged into it, less what the same manager has applied
 * before and leaves out now. Only managers that apply own fields; what others write is theirs for as long as nobody
 * applies it (Kubernetes counts their updates too: `structured-merge-diff/v6/merge/update.go`).
 */
export function applyManifest(
  current: JsonObject,
  { applied, manager, force, time }: Apply,
): { readonly object: JsonObject; readonly conflicts: readonly ApplyConflict[] } {
  const wanted = fieldsOf(applied)
  const owners = ownersOf(current)
  const others = owners.filter((owner) => owner.manager !== manager)
  const contested = pathsOf(wanted).flatMap((path) =>
    others
      .filter(
        ({ fields }) => hasPath(fields, path) && !sameData(valueAt(current, path), valueAt(applied, path)),
      )
      .map((owner) => ({ owner, path })),
  )
  const conflicts = contested.map(({ owner, path }) => ({
    manager: owner.manager,
    field: formatManagedPath(path),
  }))
  if (conflicts.length > 0 && !force) return { object: current, conflicts }
  const before = owners.find((owner) => owner.manager === manager)
  const dropped = pathsOf(before?.fields ?? {}).filter(
    (path) => !hasPath(wanted, path) && !others.some(({ fields }) => hasPath(fields, path)),
  )
  const kept = dropped.reduce<Json>((value, path) => withoutPath(value, path), current)
  const merged = strategicMerge(kept, applied)
  const object = isJsonObject(merged) ? merged : current
  const left = others.flatMap(({ entry, fields, manager: other }) => {
    const lost = contested.flatMap(({ owner, path }) => (owner.manager === other ? [path] : []))
    const paths = pathsOf(fields).filter((path) => !lost.some((taken) => sameData(taken, path)))
    return paths.length === 0 ? [] : [{ ...entry, fieldsV1: setOf(paths) }]
  })
  const isSame = before !== undefined && sameData(before.fields, wanted)
  const own = isSame
    ? before.entry
    : {
        manager,
        operation: 'Apply',
        apiVersion: applied['apiVersion'] ?? 'v1',
        time,
        fieldsType: 'FieldsV1',
        fieldsV1: wanted,
      }
  const metadata = isJsonObject(object['metadata']) ? object['metadata'] : {}
  return { object: { ...object, metadata: { ...metadata, managedFields: [own, ...left] } }, conflicts: [] }
}

function ownersOf({ metadata }: JsonObject): readonly Owner[] {
  const entries = isJsonObject(metadata) ? metadata['managedFields'] : undefined
  if (!Array.isArray(entries)) return []
  return entries.flatMap((entry: Json) => {
    if (!isJsonObject(entry)) return []
    const { manager, fieldsV1, operation } = entry
    if (typeof manager !== 'string' || operation !== 'Apply' || !isJsonObject(fieldsV1)) return []
    return [{ manager, fields: fieldsV1, entry }]
  })
}
