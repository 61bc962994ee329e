import type { Json } from '../../base/json.ts'
import { isJsonObject } from '../../base/json.ts'
import { canonicalQuantity, writtenQuantity } from '../values/quantity.ts'
import type { AnyType, Fields, Infer } from './types.ts'

/**
 * A checked value with the schema's defaults filled in and quantities in their canonical form. Only
 * supported fields are in the result, so a value written by a newer podd can be read too.
 */
export function fillDefaults(type: AnyType, value: Json): unknown {
  switch (type.kind) {
    case 'object':
      return isJsonObject(value) ? fillObject(type.fields, value) : value
    case 'list':
      return Array.isArray(value) ? value.map((item) => fillDefaults(type.item, item)) : value
    case 'map':
      if (!isJsonObject(value)) return value
      return Object.fromEntries(
        Object.entries(value).map(([key, item]) => [key, fillDefaults(type.value, item)]),
      )
    case 'quantity':
      return typeof value === 'object' ? value : (canonicalQuantity(writtenQuantity(value)) ?? value)
    default:
      return value
  }
}

function fillObject(fields: Fields, value: { readonly [key: string]: Json }): Record<string, unknown> {
  const filled: Record<string, unknown> = {}
  for (const [key, field] of Object.entries(fields)) {
    if (field.presence === 'absent') continue
    const given = value[key]
    if (given !== undefined && given !== null) filled[key] = fillDefaults(field.type, given)
    else if (field.presence === 'defaulted') filled[key] = field.value
  }
  return filled
}

/** Whether a value is what the schema's static type says; it may hold more. */
export function conforms<T extends AnyType>(type: T, value: unknown): value is Infer<T> {
  return matches(type, value)
}

function matches(type: AnyType, value: unknown): boolean {
  switch (type.kind) {
    case 'object':
      return isJsonObject(value) && fieldsMatch(type.fields, value)
    case 'list':
      return Array.isArray(value) && value.every((item) => matches(type.item, item))
    case 'map':
      return isJsonObject(value) && Object.values(value).every((item) => matches(type.value, item))
    case 'int32':
    case 'int64':
      return Number.isInteger(value)
    case 'bool':
      return typeof value === 'boolean'
    case 'intOrString':
      return Number.isSafeInteger(value) || typeof value === 'string'
    case 'quantity':
      return typeof value === 'string' && canonicalQuantity(value) !== undefined
    case 'string':
      return typeof value === 'string' && type.values?.includes(value) !== false
    case 'any':
      return true
  }
}

function fieldsMatch(fields: Fields, value: Readonly<Record<string, unknown>>): boolean {
  return Object.entries(fields).every(([key, field]) => {
    const given = value[key]
    if (field.presence === 'absent') return true
    if (given === undefined) return field.presence === 'optional'
    return matches(field.type, given)
  })
}
