import type { Json } from '../../base/json.ts'
import type { AnyType, Fields } from './types.ts'

/** What Go's decoder makes of null in a list or a map. */
export function emptyOf(type: AnyType): Json {
  switch (type.kind) {
    case 'object':
    case 'map':
      return {}
    case 'list':
      return []
    case 'bool':
      return false
    case 'int32':
    case 'int64':
    case 'intOrString':
      return 0
    case 'quantity':
      return '0'
    case 'string':
      return ''
    case 'any':
      return null
  }
}

/** A value that the type's schema takes, in place of one that can't be used; it has what it must have, and no more. */
export function zeroOf(type: AnyType): Json {
  if (type.kind === 'string') return type.values?.[0] ?? ''
  if (type.kind !== 'object') return emptyOf(type)
  const fields: Fields = type.fields
  return Object.fromEntries(
    Object.entries(fields)
      .filter(([, { presence }]) => presence === 'required')
      .map(([key, field]) => [key, zeroOf(field.type)]),
  )
}
