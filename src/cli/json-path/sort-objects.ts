import { PoddError } from '../../base/errors.ts'
import { parseQuantity } from '../../pod/values/quantity.ts'
import type { JsonPath } from './parse-template.ts'
import { formatValue } from './print-template.ts'
import { selectJsonPath } from './select-path.ts'

/**
 * Sorts objects by the first value at a JSONPath: numbers and quantities by size, everything else, including times, as
 * text; objects without a value come first (kubectl `cmd/get/sorter.go`, 1.36).
 * @param text the path as it was given, for the message
 * @throws PoddError JSONPATH_FAILED where no object has such a value
 */
export function sortObjects<T>(objects: readonly T[], path: JsonPath, text: string): readonly T[] {
  const keyed = objects.map((object) => ({ object, key: selectJsonPath(object, path)[0] }))
  if (objects.length > 0 && keyed.every(({ key }) => key === undefined)) {
    throw new PoddError(
      'JSONPATH_FAILED',
      `couldn't find any field with path ${JSON.stringify(text)} in the list of objects`,
    )
  }
  return keyed.toSorted((a, b) => compare(a.key, b.key)).map(({ object }) => object)
}

function compare(a: unknown, b: unknown): number {
  if (a === undefined || b === undefined) return Number(a !== undefined) - Number(b !== undefined)
  const [one, other] = [sizeOf(a), sizeOf(b)]
  if (one !== undefined && other !== undefined) return one - other
  const [left, right] = [formatValue(a), formatValue(b)]
  return left < right ? -1 : left > right ? 1 : 0
}

function sizeOf(value: unknown): number | undefined {
  if (typeof value === 'number') return value
  const quantity = typeof value === 'string' ? parseQuantity(value) : undefined
  return quantity === undefined ? undefined : Number(quantity.nanos) / 1e9
}
