import { parseQuantity } from '../../pod/values/quantity.ts'
import { readJsonPath, selectJsonPath } from './json-path.ts'
import { formatValue } from './json-path-template.ts'

/**
 * Sorts objects by the first value at a JSONPath: numbers and quantities by size, everything else, including times, as
 * text; objects without a value come first (kubectl `cmd/get/sorter.go`, 1.36). Throws UsageError.
 */
export function sortObjects<T>(objects: readonly T[], text: string): readonly T[] {
  const path = readJsonPath(text)
  const keyed = objects.map((object) => ({ object, key: selectJsonPath(object, path)[0] }))
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
