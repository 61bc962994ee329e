import type { Json, JsonObject } from '../../base/json.ts'
import { isJsonObject, sameData } from '../../base/json.ts'
import { PatchError } from './patch-error.ts'

/**
 * The merge keys of lists, by field: `patchMergeKey` of the API's types (`k8s.io/api/core/v1/types.go`, 1.36). Other
 * lists are replaced as a whole.
 */
const mergeKeys: Readonly<Record<string, string>> = {
  containers: 'name',
  initContainers: 'name',
  ephemeralContainers: 'name',
  volumes: 'name',
  env: 'name',
  imagePullSecrets: 'name',
  secrets: 'name',
  resourceClaims: 'name',
  schedulingGates: 'name',
  ports: 'containerPort',
  volumeMounts: 'mountPath',
  volumeDevices: 'devicePath',
  topologySpreadConstraints: 'topologyKey',
  hostAliases: 'ip',
  podIPs: 'ip',
  hostIPs: 'ip',
  conditions: 'type',
  ownerReferences: 'uid',
}

/** Lists of plain values that are merged as sets. */
const mergedSets: readonly string[] = ['finalizers']

const orderPrefix = '$setElementOrder/'
const deletePrefix = '$deleteFromPrimitiveList/'

/**
 * Applies a strategic merge patch (`k8s.io/apimachinery/pkg/util/strategicpatch/patch.go`, 1.36).
 * @throws PatchError
 */
export function strategicMerge(current: Json | undefined, patch: Json): Json {
  if (!isJsonObject(patch)) throw new PatchError('a strategic merge patch must be an object')
  return mergeObjects(isJsonObject(current) ? current : {}, patch) ?? {}
}

/** Undefined where the patch deletes the object. */
function mergeObjects(current: JsonObject, patch: JsonObject): JsonObject | undefined {
  const directive = patch['$patch']
  if (directive === 'delete') return undefined
  if (directive === 'replace') return withoutDirectives(patch)
  if (directive !== undefined && directive !== 'merge')
    throw new PatchError(`unknown patch type: ${JSON.stringify(directive)}`)
  const merged = new Map<string, Json>(Object.entries(current))
  const kept = patch['$retainKeys']
  if (Array.isArray(kept)) for (const key of merged.keys()) if (!kept.includes(key)) merged.delete(key)
  for (const [key, value] of Object.entries(patch)) {
    if (key === '$patch' || key === '$retainKeys' || key.startsWith(orderPrefix)) continue
    if (key.startsWith(deletePrefix)) {
      removeValues(merged, key.slice(deletePrefix.length), value)
      continue
    }
    const next = value === null ? undefined : mergeValue(key, merged.get(key), value)
    if (next === undefined) merged.delete(key)
    else merged.set(key, next)
  }
  for (const [key, order] of Object.entries(patch))
    if (key.startsWith(orderPrefix)) applyOrder(merged, key.slice(orderPrefix.length), order)
  return Object.fromEntries(merged)
}

function mergeValue(key: string, current: Json | undefined, value: Json): Json | undefined {
  if (isJsonObject(value)) return mergeObjects(isJsonObject(current) ? current : {}, value)
  if (!Array.isArray(value)) return value
  const items: readonly Json[] = value
  const known: readonly Json[] = Array.isArray(current) ? current : []
  const mergeKey = mergeKeyOf(key, items)
  if (mergeKey !== undefined) return mergeLists(known, items, mergeKey)
  if (!mergedSets.includes(key)) return items
  return [...known, ...items.filter((item) => !known.some((other) => sameData(other, item)))]
}

/** The merge key of a list of this name; undefined where the list is replaced as a whole. */
export function mergeKeyOf(key: string, items: readonly Json[]): string | undefined {
  const mergeKey = Object.hasOwn(mergeKeys, key) ? mergeKeys[key] : undefined
  const isListOfObjects = items.every((item) => isJsonObject(item))
  return isListOfObjects ? mergeKey : undefined
}

function mergeLists(current: readonly Json[], patch: readonly Json[], mergeKey: string): readonly Json[] {
  if (patch.some((item) => isJsonObject(item) && item['$patch'] === 'replace' && !(mergeKey in item)))
    return patch.filter((item) => isJsonObject(item) && item['$patch'] === undefined)
  const merged: Json[] = [...current]
  for (const item of patch) {
    if (!isJsonObject(item)) continue
    const id = item[mergeKey]
    if (id === undefined)
      throw new PatchError(`an item of the patch lacks ${mergeKey}, by which the list is merged`)
    const index = merged.findIndex((other) => isJsonObject(other) && sameData(other[mergeKey], id))
    const known = index === -1 ? {} : (merged[index] ?? {})
    const next = mergeObjects(isJsonObject(known) ? known : {}, item)
    if (index === -1) {
      if (next !== undefined) merged.push(next)
    } else if (next === undefined) merged.splice(index, 1)
    else merged[index] = next
  }
  return merged
}

function removeValues(merged: Map<string, Json>, key: string, values: Json): void {
  const current = merged.get(key)
  if (!Array.isArray(current) || !Array.isArray(values)) return
  const removed: readonly Json[] = values
  merged.set(
    key,
    current.filter((item: Json) => !removed.some((value) => sameData(value, item))),
  )
}

/** Items of the patch are in its order; each other item stays behind the one it followed. */
function applyOrder(merged: Map<string, Json>, key: string, order: Json): void {
  const current = merged.get(key)
  if (!Array.isArray(current) || !Array.isArray(order)) return
  const wanted: readonly Json[] = order
  const items: readonly Json[] = current
  const mergeKey = Object.hasOwn(mergeKeys, key) ? mergeKeys[key] : undefined
  const idOf = (item: Json): Json | undefined =>
    mergeKey !== undefined && isJsonObject(item) ? item[mergeKey] : item
  const rankOf = (item: Json): number => wanted.findIndex((other) => sameData(idOf(other), idOf(item)))
  const listed = items.filter((item) => rankOf(item) !== -1).sort((a, b) => rankOf(a) - rankOf(b))
  const arranged: Json[] = []
  for (const item of items) {
    if (rankOf(item) === -1) arranged.push(item)
    else arranged.push(listed.shift() ?? item)
  }
  merged.set(key, arranged)
}

function withoutDirectives(patch: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(patch).filter(([key]) => !key.startsWith('$')))
}
