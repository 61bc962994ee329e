import type { Json, JsonObject } from '../../base/json.ts'
import { canonicalJson, isJsonObject, sameData } from '../../base/json.ts'
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

/** A field that another manager has given another value. */
export interface ApplyConflict {
  /** `"ann"`, or `"ann" using v1` for a manager that updates and does not apply. */
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
  readonly applies: boolean
  readonly fields: JsonObject
  readonly entry: JsonObject
}

/**
 * The result of a server-side apply: the manifest merged into the object, without fields that the same manager applied
 * before and now omits (`structured-merge-diff/v6/merge/update.go`, Updater.Apply). Fields written before the first
 * apply have no owner.
 */
export function applyManifest(
  current: JsonObject,
  { applied, manager, force, time }: Apply,
): { readonly object: JsonObject; readonly conflicts: readonly ApplyConflict[] } {
  const wanted = fieldsOf(applied)
  const owners = ownersOf(current)
  const isOwn = (owner: Owner): boolean => owner.applies && owner.manager === manager
  const others = owners.filter((owner) => !isOwn(owner))
  const contested = pathsOf(wanted).flatMap((path) =>
    others
      .filter(
        ({ fields }) => hasPath(fields, path) && !sameData(valueAt(current, path), valueAt(applied, path)),
      )
      .map((owner) => ({ owner, path })),
  )
  const conflicts = contested.map(({ owner, path }) => ({
    manager: nameOf(owner),
    field: formatManagedPath(path),
  }))
  if (conflicts.length > 0 && !force) return { object: current, conflicts }
  const before = owners.find((owner) => isOwn(owner))
  const dropped = pathsOf(before?.fields ?? {}).filter(
    (path) => !hasPath(wanted, path) && !others.some(({ fields }) => hasPath(fields, path)),
  )
  const kept = dropped.reduce<Json>((value, path) => withoutPath(value, path), current)
  const merged = strategicMerge(kept, applied)
  const object = isJsonObject(merged) ? merged : current
  const left = others.flatMap((other) => {
    const { entry, fields } = other
    const lost = contested.flatMap(({ owner, path }) => (owner === other ? [path] : []))
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
  const shared = manager === 'kubectl' ? withLastApplied(metadata, applied) : metadata
  return { object: { ...object, metadata: { ...shared, managedFields: [own, ...left] } }, conflicts: [] }
}

const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration'

/**
 * Updates the annotation of client-side apply after a server-side apply by kubectl, so that a later client-side apply
 * compares with it (`apimachinery/pkg/util/managedfields/internal/lastappliedupdater.go`, 1.36).
 */
function withLastApplied(metadata: JsonObject, applied: JsonObject): JsonObject {
  const { annotations } = metadata
  if (!isJsonObject(annotations) || (annotations[lastApplied] ?? '') === '') return metadata
  return { ...metadata, annotations: { ...annotations, [lastApplied]: lastAppliedOf(applied) } }
}

function lastAppliedOf(applied: JsonObject): string {
  const metadata = isJsonObject(applied['metadata']) ? applied['metadata'] : {}
  const annotations = isJsonObject(metadata['annotations']) ? metadata['annotations'] : {}
  const others = Object.entries(annotations).filter(([key]) => key !== lastApplied)
  const { annotations: _annotations, ...rest } = metadata
  const noted = { ...rest, ...(others.length > 0 && { annotations: Object.fromEntries(others) }) }
  return `${canonicalJson({ ...applied, metadata: noted })}\n`
}

function ownersOf({ metadata }: JsonObject): readonly Owner[] {
  const entries = isJsonObject(metadata) ? metadata['managedFields'] : undefined
  if (!Array.isArray(entries)) return []
  return entries.flatMap((entry: Json) => {
    if (!isJsonObject(entry)) return []
    const { manager, fieldsV1, operation } = entry
    if (typeof manager !== 'string' || !isJsonObject(fieldsV1)) return []
    return [{ manager, applies: operation === 'Apply', fields: fieldsV1, entry }]
  })
}

function nameOf({ manager, applies, entry }: Owner): string {
  const { apiVersion } = entry
  const version = typeof apiVersion === 'string' ? apiVersion : ''
  return applies ? JSON.stringify(manager) : `${JSON.stringify(manager)} using ${version}`
}
