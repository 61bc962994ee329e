import { PoddError } from '../../base/errors.ts'
import { isJsonObject } from '../../base/json.ts'
import { UsageError } from '../arguments/usage-error.ts'
import type { Comparison, JsonPath, JsonPathStep } from './parse-template.ts'
import { parseTemplate } from './parse-template.ts'

/**
 * The path in an argument, whose braces and first dot may be left out (kubectl `cmd/get/customcolumn.go`
 * RelaxedJSONPathExpression, 1.36). Throws UsageError.
 */
export function readJsonPath(text: string): JsonPath {
  const inner = /^(?:\{([^{}]+)\}|([^{}]+))$/u.exec(text)
  const path = (inner?.[1] ?? inner?.[2])?.replace(/^[$@](?=[.[])/u, '')
  if (path === undefined) {
    throw new UsageError(
      `unexpected path ${JSON.stringify(text)}`,
      'Write a path such as .metadata.name or {.metadata.name}',
    )
  }
  const [word] = parseTemplate(`{${/^[.[]/u.test(path) ? path : `.${path}`}}`)
  return word?.kind === 'path' ? word.path : []
}

/**
 * The values at a path; a key that is missing gives none (`client-go/util/jsonpath/jsonpath.go`, 1.36, with its messages).
 * Other than there, a slice of one list doesn't depend on those before it, and what has no element at an index doesn't
 * exist for a filter.
 * @throws PoddError JSONPATH_FAILED where a value is none that a step can be taken into
 */
export function selectJsonPath(value: unknown, path: JsonPath): readonly unknown[] {
  return selectOfAll([value], path)
}

function selectOfAll(values: readonly unknown[], path: JsonPath): readonly unknown[] {
  return path.reduce<readonly unknown[]>((before, step) => take(before, step), values)
}

function take(values: readonly unknown[], step: JsonPathStep): readonly unknown[] {
  switch (step.kind) {
    case 'literal':
      return typeof step.value === 'string' ? [step.value] : values.map(() => step.value)
    case 'key':
      return values.flatMap((value) => valueOfKey(value, step.key))
    case 'dotted':
      return values.flatMap((value) => {
        const whole = valueOfKey(value, step.whole)
        return whole.length > 0 ? whole : selectJsonPath(value, step.path)
      })
    case 'index':
      return values.flatMap((value) => (value === null ? [] : elementAt(listOf(value), step.index)))
    case 'slice':
      return values.flatMap((value) => (value === null ? [] : slice(listOf(value), step)))
    case 'all':
      return values.flatMap((value) => childrenOf(value))
    case 'descend':
      return values.flatMap((value) => descend(value))
    case 'union':
      return step.paths.flatMap((path) => selectOfAll(values, path))
    case 'exists':
      return values.flatMap((value) => filtered(value).filter((item) => exists(item, step.path)))
    case 'compare':
      return values.flatMap((value) =>
        filtered(value).filter((item) => {
          const left = onlyOne(selectJsonPath(item, step.left))
          const right = left.length === 0 ? [] : onlyOne(selectJsonPath(item, step.right))
          return right.length > 0 && compares(left[0], step.operator, right[0])
        }),
      )
  }
}

function valueOfKey(value: unknown, key: string): readonly unknown[] {
  return isJsonObject(value) && Object.hasOwn(value, key) && value[key] !== undefined ? [value[key]] : []
}

function listOf(value: unknown): readonly unknown[] {
  if (isList(value)) return value
  throw failed(`${nameOfType(value)} is not array or slice`)
}

function filtered(value: unknown): readonly unknown[] {
  if (isList(value)) return value
  throw failed(`${nameOfType(value)} is not array or slice and cannot be filtered`)
}

function elementAt(list: readonly unknown[], index: number): readonly unknown[] {
  const at = index < 0 ? index + list.length : index
  if (at < 0 || at >= list.length) throw outOfBounds(at, list.length)
  return [list[at]]
}

function slice(
  list: readonly unknown[],
  { from, to, step }: Extract<JsonPathStep, { kind: 'slice' }>,
): readonly unknown[] {
  const { length } = list
  const start = from < 0 ? from + length : from
  const end = to === undefined ? length : to < 0 ? to + length : to
  if (start === end) return []
  if (start < 0 || start >= length) throw outOfBounds(start, length)
  if (end < 0 || end > length) throw outOfBounds(end - 1, length)
  if (start > end) throw failed(`starting index ${start} is greater than ending index ${end}`)
  if (step <= 0) throw failed('step must be > 0')
  return list.slice(start, end).filter((_, index) => index % step === 0)
}

function childrenOf(value: unknown): readonly unknown[] {
  if (isList(value)) return value
  return isJsonObject(value) ? Object.values(value).filter((child) => child !== undefined) : []
}

/** All that holds something, from the outermost to the innermost: lists, mappings and texts that aren't empty. */
function descend(value: unknown): readonly unknown[] {
  if (typeof value === 'string') return value === '' ? [] : [value]
  const children = childrenOf(value)
  return children.length === 0 ? [] : [value, ...children.flatMap((child) => descend(child))]
}

function exists(item: unknown, path: JsonPath): boolean {
  try {
    return selectJsonPath(item, path).length > 0
  } catch (error) {
    // A step that cannot be taken leads to nothing.
    if (error instanceof PoddError) return false
    throw error
  }
}

function onlyOne(values: readonly unknown[]): readonly unknown[] {
  if (values.length > 1) throw failed('can only compare one element at a time')
  return values
}

/** Only what is of one type is compared, and only numbers and texts have an order. */
function compares(left: unknown, operator: Comparison, right: unknown): boolean {
  for (const side of [left, right])
    if (!['string', 'number', 'boolean'].includes(typeof side)) throw failed('invalid type for comparison')
  if (typeof left !== typeof right) throw failed('incompatible types for comparison')
  if (operator === '==' || operator === '!=') return (left === right) === (operator === '==')
  const order =
    typeof left === 'number' && typeof right === 'number'
      ? left - right
      : typeof left === 'string' && typeof right === 'string'
        ? Number(left > right) - Number(left < right)
        : undefined
  if (order === undefined) throw failed('invalid type for comparison')
  switch (operator) {
    case '<':
      return order < 0
    case '<=':
      return order <= 0
    case '>':
      return order > 0
    case '>=':
      return order >= 0
  }
}

function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value)
}

function nameOfType(value: unknown): string {
  return value === null ? 'null' : typeof value
}

function outOfBounds(index: number, length: number): PoddError {
  return failed(`array index out of bounds: index ${index}, length ${length}`)
}

function failed(message: string): PoddError {
  return new PoddError('JSONPATH_FAILED', message)
}
