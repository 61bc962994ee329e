/* Server-side apply, and who manages which fields of an object. */
import {
  canonicalJson,
  isJsonObject,
  jsonAt,
  listOrEmpty,
  objectOrEmpty,
  parseJson,
  sameData,
} from '../../base/json.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import { keyValue, mergeKeyOf, PatchError, strategicMerge } from './patch.ts'
import type { ListKeys } from './patch.ts'
import { metadataOf } from './prepare-object.ts'

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
 * @throws PatchError
 */
export function applyManifest(
  current: JsonObject,
  { applied, manager, force, time }: Apply,
): { readonly object: JsonObject; readonly conflicts: readonly ApplyConflict[] } {
  refuseTwins(applied, [])
  const wanted = fieldsOf(applied)
  const owners = ownersOf(current)
  const isOwn = (owner: Owner): boolean => owner.applies && owner.manager === manager
  const others = owners.filter((owner) => !isOwn(owner))
  // Not the manifest itself: an empty object in it leaves what is in the object's.
  const changed = strategicMerge(current, applied, appliedKeys)
  const contested = pathsOf(wanted).flatMap((path) =>
    others
      .filter(
        ({ fields }) => hasPath(fields, path) && !sameData(valueAt(current, path), valueAt(changed, path)),
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
  const merged = strategicMerge(kept, applied, appliedKeys)
  const object = isJsonObject(merged) ? merged : current
  const left = others.flatMap((other) => {
    const { entry, fields } = other
    const lost = contested.flatMap(({ owner, path }) => (owner === other ? [path] : []))
    const paths = pathsOf(fields).filter(
      (path) => valueAt(object, path) !== undefined && !lost.some((taken) => sameData(taken, path)),
    )
    return paths.length === 0 ? [] : [{ ...entry, fieldsV1: setOf(paths) }]
  })
  const isSame = before !== undefined && sameData(before.fields, wanted)
  const own = isSame ? before.entry : entryOf(applied, { manager, time }, 'Apply', wanted)
  const metadata = metadataOf(object)
  const shared = manager === 'kubectl' ? withLastApplied(metadata, applied) : metadata
  return { object: { ...object, metadata: { ...shared, managedFields: [own, ...left] } }, conflicts: [] }
}

/** Throws PatchError where an item of a list stands twice: only one of them would be kept. */
function refuseTwins(value: Json, at: ManagedPath): void {
  for (const [field, below] of Object.entries(objectOrEmpty(value))) {
    const here = [...at, `f:${field}`]
    refuseTwins(below, here)
    const items = listOrEmpty(below)
    const seen = new Set<string>()
    for (const item of items) {
      const step = stepOf(item, appliedKeys(field, items))
      if (step === undefined) continue
      if (seen.has(step)) throw new PatchError(`${formatManagedPath([...here, step])} stands twice`)
      seen.add(step)
      refuseTwins(item, [...here, step])
    }
  }
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
  const metadata = metadataOf(applied)
  const others = Object.entries(objectOrEmpty(metadata['annotations'])).filter(([key]) => key !== lastApplied)
  const { annotations: _annotations, ...rest } = metadata
  const noted = { ...rest, ...(others.length > 0 && { annotations: Object.fromEntries(others) }) }
  return `${canonicalJson({ ...applied, metadata: noted })}\n`
}

function ownersOf(object: JsonObject): readonly Owner[] {
  return listOrEmpty(metadataOf(object)['managedFields']).flatMap((entry) => {
    if (!isJsonObject(entry)) return []
    const { manager, fieldsV1, operation } = entry
    if (typeof manager !== 'string' || !isJsonObject(fieldsV1)) return []
    const fields = withSecondKeys(fieldsV1, object)
    return [{ manager, applies: operation === 'Apply', fields, entry: { ...entry, fieldsV1: fields } }]
  })
}

function nameOf({ manager, applies, entry }: Owner): string {
  const { apiVersion } = entry
  const version = typeof apiVersion === 'string' ? apiVersion : ''
  return applies ? JSON.stringify(manager) : `${JSON.stringify(manager)} using ${version}`
}

/** A field's path as meta/v1 FieldsV1 writes its steps: `f:` and a name, `k:` and the key of a list's item. */
export type ManagedPath = readonly string[]

/**
 * The set of fields in a manifest (`structured-merge-diff/v6/fieldpath`, serialize.go): lists that are merged by a key
 * by their items, all others as a whole.
 */
function fieldsOf(manifest: JsonObject): JsonObject {
  const { apiVersion: _apiVersion, kind: _kind, status: _status, ...rest } = manifest
  const metadata = metadataOf(rest)
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

/**
 * The second key of lists, by the first: `listMapKey` of the API's types (`k8s.io/api/core/v1/types.go`, 1.36), of which
 * a strategic merge patch knows one.
 */
const secondKeys: Readonly<Record<string, string>> = {
  containerPort: 'protocol',
  port: 'protocol',
  topologyKey: 'whenUnsatisfiable',
}

const appliedKeys: ListKeys = (key, items) => {
  const first = mergeKeyOf(key, items)
  if (first === undefined) return []
  const second = secondKeys[first]
  return second === undefined ? [first] : [first, second]
}

function fieldsOfValue(key: string, value: Json): JsonObject {
  if (isJsonObject(value)) return fieldsOfObject(value)
  if (!Array.isArray(value)) return {}
  const items: readonly Json[] = value
  const keys = appliedKeys(key, items)
  if (keys.length === 0) return {}
  return Object.fromEntries(
    items.flatMap((item) => {
      const step = stepOf(item, keys)
      return step === undefined ? [] : [[step, { '.': {}, ...fieldsOfObject(objectOrEmpty(item)) }]]
    }),
  )
}

/** The step to an item of a list; undefined where it lacks a key, or the list has none. */
function stepOf(item: Json, keys: readonly string[]): string | undefined {
  if (!isJsonObject(item) || keys.length === 0) return undefined
  const id = keys.flatMap((key) => {
    const part = keyValue(item, key)
    return part === undefined ? [] : [[key, part] as const]
  })
  return id.length < keys.length ? undefined : `k:${JSON.stringify(Object.fromEntries(id))}`
}

/**
 * A recorded set of the fields of an object. An earlier podd recorded an item of two keys by the first alone: such a step
 * gets the second of the item that it leads to.
 */
function withSecondKeys(fields: JsonObject, value: Json | undefined): JsonObject {
  const complete = new Map<string, JsonObject>()
  for (const [step, below] of Object.entries(fields)) {
    const whole = withSecondKey(step, value)
    const inner = withSecondKeys(objectOrEmpty(below), valueAt(value, [whole]))
    const known = complete.get(whole)
    complete.set(whole, known === undefined ? inner : setOf([...pathsOf(known), ...pathsOf(inner)]))
  }
  return Object.fromEntries(complete)
}

function withSecondKey(step: string, value: Json | undefined): string {
  if (!step.startsWith('k:')) return step
  const key = keyOf(step)
  const [first = '', ...others] = Object.keys(key)
  const second = Object.hasOwn(secondKeys, first) ? secondKeys[first] : undefined
  if (second === undefined || others.length > 0) return step
  const item = listOrEmpty(value).find((each) => isItem(each, step))
  const part = keyValue(objectOrEmpty(item), second)
  return part === undefined ? step : `k:${JSON.stringify({ ...key, [second]: part })}`
}

/** The paths of a set, without those that have others below them. */
function pathsOf(fields: JsonObject): readonly ManagedPath[] {
  return Object.entries(fields).flatMap(([step, below]) => {
    const inner = isJsonObject(below) ? pathsOf(below) : []
    return inner.length === 0 ? [[step]] : inner.map((path) => [step].concat(path))
  })
}

/** The set of paths. */
function setOf(paths: readonly ManagedPath[]): JsonObject {
  const names = new Set(paths.flatMap(([step]) => (step === undefined ? [] : [step])))
  return Object.fromEntries(
    [...names].map((name) => [
      name,
      setOf(paths.flatMap(([step, ...rest]) => (step === name && rest.length > 0 ? [rest] : []))),
    ]),
  )
}

function hasPath(fields: JsonObject, [step, ...rest]: ManagedPath): boolean {
  if (step === undefined) return true
  const below = fields[step]
  return isJsonObject(below) && hasPath(below, rest)
}

/** The value at a path; undefined without one. `.` stands for an item alone, whatever is in it. */
function valueAt(value: Json | undefined, [step, ...rest]: ManagedPath): Json | undefined {
  if (step === undefined) return value
  if (step === '.') return value === undefined ? undefined : true
  if (step.startsWith('f:')) return valueAt(jsonAt(value, step.slice(2)), rest)
  return valueAt(
    listOrEmpty(value).find((item) => isItem(item, step)),
    rest,
  )
}

/** A value without the field at a path. */
function withoutPath(value: Json, [step, ...rest]: ManagedPath): Json {
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
function formatManagedPath(path: ManagedPath): string {
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
  return (
    isJsonObject(item) && Object.entries(keyOf(step)).every(([key, id]) => sameData(keyValue(item, key), id))
  )
}

/** Also for a step that a client sent back. */
function keyOf(step: string): JsonObject {
  const key = parseJson(step.slice(2))
  if (isJsonObject(key)) return key
  // A key that doesn't occur.
  return key === undefined ? { '': '' } : {}
}

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
  const entries = listOrEmpty(given).filter((entry) => isEntry(entry))
  if (entries.length === 0) return withManagers(after, [])
  const changed = pathsOf(fieldsOf(after)).filter(
    (path) => !sameData(valueAt(before, path), valueAt(after, path)),
  )
  const isChanged = (path: readonly string[]): boolean => changed.some((other) => sameData(other, path))
  const isOwn = (entry: JsonObject): boolean =>
    entry['manager'] === manager && entry['operation'] === 'Update'
  const kept = entries.flatMap((entry: JsonObject) => {
    const fields = withSecondKeys(objectOrEmpty(entry['fieldsV1']), before)
    const left = pathsOf(fields).filter((path) => valueAt(after, path) !== undefined && !isChanged(path))
    const paths = isOwn(entry) ? left.concat(changed) : left
    const set = setOf(paths)
    if (paths.length === 0) return []
    return sameData(set, entry['fieldsV1'])
      ? [entry]
      : [{ ...entry, ...(isOwn(entry) && { time }), fieldsV1: set }]
  })
  const isNew = changed.length > 0 && !kept.some((entry) => isOwn(entry))
  const own = entryOf(after, { manager, time }, 'Update', setOf(changed))
  return withManagers(after, isNew ? [...kept, own] : kept)
}

/** What metadata.managedFields says of a manager's fields. */
function entryOf(
  { apiVersion = 'v1' }: JsonObject,
  { manager, time }: Updater,
  operation: 'Apply' | 'Update',
  fieldsV1: JsonObject,
): JsonObject {
  return { manager, operation, apiVersion, time, fieldsType: 'FieldsV1', fieldsV1 }
}

function isEntry(entry: Json): entry is JsonObject {
  return isJsonObject(jsonAt(entry, 'fieldsV1'))
}

function withManagers(object: JsonObject, entries: readonly JsonObject[]): JsonObject {
  const { managedFields: _before, ...metadata } = metadataOf(object)
  return {
    ...object,
    metadata: entries.length === 0 ? metadata : { ...metadata, managedFields: entries },
  }
}
