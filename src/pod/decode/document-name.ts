import type { JsonObject } from '../../base/json.ts'
import { isJsonObject } from '../../base/json.ts'
import { objectKindNames } from '../kinds/object-kinds.ts'
import { objectKey } from '../objects/local-object.ts'
import { podKey } from '../values/ids.ts'

interface Named {
  readonly namespace: string
  readonly name: string
}

/** `namespace/name`, where the document has them. */
export function objectOf(value: JsonObject): string | undefined {
  const named = nameOf(value)
  return named === undefined ? undefined : podKey(named)
}

/** The key of every kind of document that could have this name. */
export function keysNamed(named: Named): readonly string[] {
  return [podKey(named), ...objectKindNames.map((kind) => objectKey(kind, named.namespace, named.name))]
}

/** Undefined where the document has no readable name. */
export function nameOf(value: JsonObject): Named | undefined {
  const metadata = value['metadata']
  if (!isJsonObject(metadata)) return undefined
  const { name, namespace } = metadata
  if (typeof name !== 'string' || name === '') return undefined
  return { namespace: typeof namespace === 'string' && namespace !== '' ? namespace : 'default', name }
}
