/* The three kinds of patches: JSON patch, JSON merge patch, strategic merge patch. */
import { PoddError } from '../../base/errors.ts'
import { isJsonObject, listOrEmpty, objectOrEmpty, sameData } from '../../base/json.ts'
import type { Json, JsonObject } from '../../base/json.ts'

/** A patch that is not well-formed, or can't be applied to the object. */
export class PatchError extends PoddError {
  constructor(message: string) {
    super('PATCH_NOT_APPLICABLE', message)
  }
}

/** The most operations that an API server accepts (`pkg/endpoints/handlers/patch.go`, maxJSONPatchOperations, 1.36). */
const maxOperations = 10_000

/**
 * The most bytes that all copies of a patch may take (`apiserver/pkg/server/config.go`, JSONPatchMaxCopyBytes, 1.36).
 */
const maxCopiedBytes = 3 * 1024 * 1024

/**
 * Applies a JSON patch (RFC 6902).
 * @throws PatchError
 */
export function jsonPatch(current: Json, patch: Json): Json {
  if (!Array.isArray(patch)) throw new PatchError('a JSON patch must be a list of operations')
  if (patch.length > maxOperations)
    throw new PatchError(`a JSON patch may have ${maxOperations} operations, not ${patch.length}`)
  let copiedBytes = 0
  const countCopy = (copied: Json): Json => {
    copiedBytes += Buffer.byteLength(JSON.stringify(copied))
    if (copiedBytes > maxCopiedBytes)
      throw new PatchError(`a JSON patch may copy ${maxCopiedBytes} bytes at most`)
    return copied
  }
  return patch.reduce((value: Json, operation: Json) => applyOperation(value, operation, countCopy), current)
}

function applyOperation(value: Json, operation: Json, countCopy: (copied: Json) => Json): Json {
  if (!isJsonObject(operation)) throw new PatchError('an operation of a JSON patch must be an object')
  const path = pointer(operation, 'path')
  switch (operation['op']) {
    case 'add':
      return change(value, path, operand(operation), 'add')
    case 'replace':
      return change(value, path, operand(operation), 'replace')
    case 'remove':
      return change(value, path, undefined, 'remove')
    case 'test':
      if (sameData(read(value, path), operand(operation))) return value
      throw new PatchError(`testing value ${JSON.stringify(operation['path'])} failed`)
    case 'copy':
      return change(value, path, countCopy(read(value, pointer(operation, 'from'))), 'add')
    case 'move': {
      const from = pointer(operation, 'from')
      return change(change(value, from, undefined, 'remove'), path, read(value, from), 'add')
    }
    default:
      throw new PatchError(`unexpected kind of operation: ${JSON.stringify(operation['op'] ?? null)}`)
  }
}

function operand(operation: JsonObject): Json {
  const { value } = operation
  if (value === undefined) throw new PatchError('an operation of the JSON patch lacks its value')
  return value
}

/** A JSON pointer (RFC 6901). */
function pointer(operation: JsonObject, key: 'path' | 'from'): readonly string[] {
  const text = operation[key]
  if (typeof text !== 'string' || (text !== '' && !text.startsWith('/')))
    throw new PatchError(`${key} of an operation must be a JSON pointer`)
  return text
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
}

function read(value: Json, path: readonly string[]): Json {
  let found: Json | undefined = value
  for (const step of path) {
    if (Array.isArray(found)) found = found[indexOf(step, found.length - 1)]
    else if (isJsonObject(found) && Object.hasOwn(found, step)) found = found[step]
    else found = undefined
    if (found === undefined) throw missing(path)
  }
  return found
}

function change(
  value: Json,
  path: readonly string[],
  fresh: Json | undefined,
  kind: 'add' | 'replace' | 'remove',
  whole = path,
): Json {
  const [step, ...rest] = path
  if (step === undefined) {
    if (fresh === undefined) throw new PatchError('the whole object cannot be removed')
    return fresh
  }
  if (Array.isArray(value)) {
    const items: Json[] = [...value]
    if (rest.length === 0 && kind === 'add') {
      items.splice(step === '-' ? items.length : indexOf(step, items.length), 0, fresh ?? null)
      return items
    }
    const index = indexOf(step, items.length - 1)
    if (rest.length === 0 && fresh === undefined) items.splice(index, 1)
    else
      items[index] =
        rest.length === 0 ? (fresh ?? null) : change(items[index] ?? null, rest, fresh, kind, whole)
    return items
  }
  if (!isJsonObject(value)) throw missing(whole)
  const known = Object.hasOwn(value, step) ? value[step] : undefined
  if (known === undefined && (rest.length > 0 || kind !== 'add')) throw missing(whole)
  const others = Object.entries(value).filter(([key]) => key !== step)
  if (rest.length === 0 && fresh === undefined) return Object.fromEntries(others)
  const next = rest.length === 0 ? (fresh ?? null) : change(known ?? null, rest, fresh, kind, whole)
  return Object.fromEntries([...Object.entries(value), [step, next]])
}

function indexOf(step: string, last: number): number {
  const index = /^(?:0|[1-9]\d{0,8})$/u.test(step) ? Number(step) : Number.NaN
  if (Number.isNaN(index) || index > last) throw new PatchError(`there is no item ${step} in the list`)
  return index
}

function missing(path: readonly string[]): PatchError {
  const steps = path.map((step) => `/${step.replaceAll('~', '~0').replaceAll('/', '~1')}`)
  return new PatchError(`the path ${JSON.stringify(steps.join(''))} does not exist in the object`)
}

/** Applies a JSON merge patch (RFC 7386). */
export function mergePatch(current: Json | undefined, patch: Json): Json {
  if (!isJsonObject(patch)) return patch
  const merged = new Map<string, Json>(Object.entries(objectOrEmpty(current)))
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) merged.delete(key)
    else merged.set(key, mergePatch(merged.get(key), value))
  }
  return Object.fromEntries(merged)
}

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

/** Which values together tell the items of a list apart; none where the list is replaced as a whole. */
export type ListKeys = (key: string, items: readonly Json[]) => readonly string[]

/** By one value: a container's port 53 of TCP and that of UDP are the same item. */
const strategicKeys: ListKeys = (key, items) => {
  const mergeKey = mergeKeyOf(key, items)
  return mergeKey === undefined ? [] : [mergeKey]
}

/** The values that count where an item of a list doesn't have them. */
const keyDefaults: Readonly<Record<string, string>> = { protocol: 'TCP' }

/** The value of an item by which it is told from others; undefined where it has none. */
export function keyValue(item: JsonObject, key: string): Json | undefined {
  return item[key] ?? (Object.hasOwn(keyDefaults, key) ? keyDefaults[key] : undefined)
}

/** Lists of plain values that are merged as sets. */
const mergedSets: readonly string[] = ['finalizers']

const orderPrefix = '$setElementOrder/'
const deletePrefix = '$deleteFromPrimitiveList/'

/**
 * Applies a strategic merge patch (`k8s.io/apimachinery/pkg/util/strategicpatch/patch.go`, 1.36).
 * @throws PatchError
 */
export function strategicMerge(current: Json | undefined, patch: Json, keysOf = strategicKeys): Json {
  if (!isJsonObject(patch)) throw new PatchError('a strategic merge patch must be an object')
  return mergeObjects(objectOrEmpty(current), patch, keysOf) ?? {}
}

/** Undefined where the patch deletes the object. */
function mergeObjects(current: JsonObject, patch: JsonObject, keysOf: ListKeys): JsonObject | undefined {
  const directive = patch['$patch']
  if (directive === 'delete') return undefined
  if (directive === 'replace')
    return Object.fromEntries(Object.entries(patch).filter(([key]) => !key.startsWith('$')))
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
    const next = value === null ? undefined : mergeValue(key, merged.get(key), value, keysOf)
    if (next === undefined) merged.delete(key)
    else merged.set(key, next)
  }
  for (const [key, order] of Object.entries(patch))
    if (key.startsWith(orderPrefix)) applyOrder(merged, key.slice(orderPrefix.length), order)
  return Object.fromEntries(merged)
}

function mergeValue(key: string, current: Json | undefined, value: Json, keysOf: ListKeys): Json | undefined {
  if (isJsonObject(value)) return mergeObjects(objectOrEmpty(current), value, keysOf)
  if (!Array.isArray(value)) return value
  const items: readonly Json[] = value
  const known = listOrEmpty(current)
  const keys = keysOf(key, items)
  if (keys.length > 0) return mergeLists(known, items, keys, keysOf)
  if (!mergedSets.includes(key)) return items
  return [...known, ...items.filter((item) => !known.some((other) => sameData(other, item)))]
}

/** The merge key of a list of this name; undefined where the list is replaced as a whole. */
export function mergeKeyOf(key: string, items: readonly Json[]): string | undefined {
  if (!items.every((item) => isJsonObject(item))) return undefined
  // Those of a Service.
  if (
    key === 'ports' &&
    items.some((item) => isJsonObject(item) && 'port' in item && !('containerPort' in item))
  )
    return 'port'
  return Object.hasOwn(mergeKeys, key) ? mergeKeys[key] : undefined
}

function mergeLists(
  current: readonly Json[],
  patch: readonly Json[],
  keys: readonly string[],
  keysOf: ListKeys,
): readonly Json[] {
  if (
    patch.some(
      (item) => isJsonObject(item) && item['$patch'] === 'replace' && !keys.some((key) => key in item),
    )
  )
    return patch.filter((item) => isJsonObject(item) && item['$patch'] === undefined)
  const merged: Json[] = [...current]
  for (const item of patch) {
    if (!isJsonObject(item)) continue
    const lacking = keys.find((key) => keyValue(item, key) === undefined)
    if (lacking !== undefined)
      throw new PatchError(`an item of the patch lacks ${lacking}, by which the list is merged`)
    const index = merged.findIndex(
      (other) =>
        isJsonObject(other) && keys.every((key) => sameData(keyValue(other, key), keyValue(item, key))),
    )
    const known = index === -1 ? {} : (merged[index] ?? {})
    const next = mergeObjects(objectOrEmpty(known), item, keysOf)
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
  const mergeKey = mergeKeyOf(key, items)
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
