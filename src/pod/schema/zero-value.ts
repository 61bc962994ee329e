import type { Json } from '../../base/json.ts'
import type { AnyType, Fields } from './types.ts'

/** The value that Go's decoder produces for null in a list or a map. */
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

/** A minimal value that the type's schema accepts, in place of an unusable one. */
export function zeroOf(type: AnyType): Json {
  if (type.kind === 'string') return type.neutral ?? type.values?.[0] ?? ''
  if (type.kind !== 'object') return emptyOf(type)
  const fields: Fields = type.fields
  return Object.fromEntries(
    Object.entries(fields)
      .filter(([, { presence }]) => presence === 'required')
      .map(([key, field]) => [key, zeroOf(field.type)]),
  )
}
