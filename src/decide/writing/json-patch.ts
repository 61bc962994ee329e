import type { Json, JsonObject } from '../../base/json.ts'
import { isJsonObject, sameData } from '../../base/json.ts'
import { PatchError } from './patch-error.ts'

/** The most operations that an API server accepts (`pkg/endpoints/handlers/patch.go`, maxJSONPatchOperations, 1.36). */
const mostOperations = 10_000

/**
 * The most bytes that all copies of a patch may take (`apiserver/pkg/server/config.go`, JSONPatchMaxCopyBytes, 1.36).
 */
const mostCopiedBytes = 3 * 1024 * 1024

/**
 * Applies a JSON patch (RFC 6902).
 * @throws PatchError
 */
export function jsonPatch(current: Json, patch: Json): Json {
  if (!Array.isArray(patch)) throw new PatchError('a JSON patch must be a list of operations')
  if (patch.length > mostOperations)
    throw new PatchError(`a JSON patch may have ${mostOperations} operations, not ${patch.length}`)
  let copiedBytes = 0
  const countCopy = (copied: Json): Json => {
    copiedBytes += Buffer.byteLength(JSON.stringify(copied))
    if (copiedBytes > mostCopiedBytes)
      throw new PatchError(`a JSON patch may copy ${mostCopiedBytes} bytes at most`)
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
    else items[index] = rest.length === 0 ? (fresh ?? null) : change(items[index] ?? null, rest, fresh, kind)
    return items
  }
  if (!isJsonObject(value)) throw missing(path)
  const known = Object.hasOwn(value, step) ? value[step] : undefined
  if (known === undefined && (rest.length > 0 || kind !== 'add')) throw missing(path)
  const others = Object.entries(value).filter(([key]) => key !== step)
  if (rest.length === 0 && fresh === undefined) return Object.fromEntries(others)
  const next = rest.length === 0 ? (fresh ?? null) : change(known ?? null, rest, fresh, kind)
  return Object.fromEntries([...Object.entries(value), [step, next]])
}

function indexOf(step: string, last: number): number {
  const index = /^(?:0|[1-9]\d{0,8})$/u.test(step) ? Number(step) : Number.NaN
  if (Number.isNaN(index) || index > last) throw new PatchError(`there is no item ${step} in the list`)
  return index
}

function missing(path: readonly string[]): PatchError {
  return new PatchError(`the path ${JSON.stringify(`/${path.join('/')}`)} does not exist in the object`)
}
