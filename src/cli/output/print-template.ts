import { errorMessage, PoddError } from '../../base/errors.ts'
import { canonicalJson, isJsonObject } from '../../base/json.ts'
import { parseQuantity } from '../../pod/values/quantity.ts'
import { UsageError } from '../arguments/parse-arguments.ts'
import type { Listing, PrintableObject } from '../arguments/verb.ts'
import { parseTemplate, readJsonPath, selectJsonPath } from './select-path.ts'
import type { JsonPath } from './select-path.ts'

interface JsonPathTemplate {
  readonly text: string
  readonly parts: readonly Part[]
}

type Part =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'path'; readonly path: JsonPath }
  | { readonly kind: 'range'; readonly path: JsonPath; readonly parts: readonly Part[] }

/**
 * A template: text, paths and quoted text in braces, and `{range PATH}…{end}` (`client-go/util/jsonpath`, 1.36). Other than
 * there, a range has to have an end. Throws UsageError.
 */
export function readTemplate(template: string): JsonPathTemplate {
  const stack: { readonly path: JsonPath; readonly parts: Part[] }[] = [{ path: [], parts: [] }]
  for (const word of parseTemplate(template)) {
    if (word.kind === 'range') stack.push({ path: word.path, parts: [] })
    else if (word.kind === 'end') {
      const ended = stack.pop()
      const outer = stack.at(-1)
      if (ended === undefined || outer === undefined)
        throw new UsageError(`error parsing jsonpath ${template}, not in range, nothing to end`)
      outer.parts.push({ kind: 'range', ...ended })
    } else stack.at(-1)?.parts.push(word.kind === 'text' ? word : { kind: 'path', path: word.path })
  }
  if (stack.length > 1) throw new UsageError(`error parsing jsonpath ${template}, {range} without {end}`)
  return { text: template, parts: stack[0]?.parts ?? [] }
}

/**
 * What `-o jsonpath=TEMPLATE` prints. Values of one path are separated by a space; objects and lists are JSON.
 * @throws PoddError JSONPATH_FAILED where a path leads into what has no such part
 */
export function printTemplate({ text, parts }: JsonPathTemplate, value: unknown): string {
  return executing(text, () =>
    resultsOf(parts, value)
      .map((values) => values.map((each) => formatValue(each)).join(' '))
      .join(''),
  )
}

/** What `-o jsonpath-as-json=TEMPLATE` prints: the values of each path as a list. */
export function printTemplateAsJson({ text, parts }: JsonPathTemplate, value: unknown): string {
  return executing(text, () =>
    resultsOf(parts, value)
      .map((values) => `${JSON.stringify(values, undefined, 4)}\n`)
      .join(''),
  )
}

function executing(template: string, print: () => string): string {
  try {
    return print()
  } catch (error) {
    if (!(error instanceof PoddError)) throw error
    const message = `error executing jsonpath ${JSON.stringify(template)}: ${errorMessage(error)}`
    throw new PoddError(error.code, message, { cause: error })
  }
}

/** The values of each part, in the order in which they are printed. */
function resultsOf(parts: readonly Part[], value: unknown): readonly (readonly unknown[])[] {
  return parts.flatMap((part) => {
    switch (part.kind) {
      case 'text':
        return [[part.text]]
      case 'path':
        return [selectJsonPath(value, part.path)]
      case 'range':
        return selectJsonPath(value, part.path).flatMap((each) => resultsOf(part.parts, each))
    }
  })
}

/** Text as it stands, anything larger as Go writes JSON: with sorted keys, and nothing that HTML would take for its own. */
function formatValue(value: unknown): string {
  if (typeof value === 'string') return value
  return canonicalJson(value).replaceAll(
    /[<>&]/gu,
    (character) => `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`,
  )
}

interface CustomColumn {
  readonly title: string
  readonly path: JsonPath
}

/** What follows `-o custom-columns=`: `NAME:.metadata.name,…`. Throws UsageError. */
export function readCustomColumns(spec: string): readonly CustomColumn[] {
  return spec.split(',').map((part) => {
    const colon = part.indexOf(':')
    if (colon < 1 || colon === part.length - 1) {
      throw new UsageError(
        `unexpected custom-columns spec: ${part}, expected <header>:<json-path-expr>`,
        'Write -o custom-columns=NAME:.metadata.name,PHASE:.status.phase',
      )
    }
    return { title: part.slice(0, colon), path: readJsonPath(part.slice(colon + 1)) }
  })
}

/**
 * The table of `-o custom-columns`, which has its titles also where there is nothing; absent values are `<none>`, values of one path are separated by commas, and objects and
 * lists look as Go prints them (kubectl `cmd/get/customcolumn.go`, 1.36).
 * @throws PoddError JSONPATH_FAILED
 */
export function customListing(
  columns: readonly CustomColumn[],
  objects: readonly PrintableObject[],
): Listing {
  const cell = (object: PrintableObject, path: JsonPath): string => {
    const values = selectJsonPath(object, path)
    return values.length === 0 ? '<none>' : values.map((value) => formatGo(value)).join(',')
  }
  return {
    columns: columns.map(({ title }) => ({ title })),
    rows: objects.map((object) => columns.map(({ path }) => cell(object, path))),
    objects,
    listKind: undefined,
    keepsTitles: true,
  }
}

/** As `fmt.Sprint` does. */
function formatGo(value: unknown): string {
  if (value === null) return '<nil>'
  if (Array.isArray(value)) return `[${value.map((item) => formatGo(item)).join(' ')}]`
  if (!isJsonObject(value)) return typeof value === 'string' ? value : JSON.stringify(value)
  const keys = Object.keys(value).toSorted()
  return `map[${keys.map((key) => `${key}:${formatGo(value[key])}`).join(' ')}]`
}

/**
 * Sorts objects by the first value at a JSONPath: numbers and quantities by size, everything else, including times, as
 * text; objects without a value come first (kubectl `cmd/get/sorter.go`, 1.36).
 * @param text the path as it was given, for the message
 * @throws PoddError JSONPATH_FAILED where no object has such a value
 */
export function sortObjects<T>(objects: readonly T[], path: JsonPath, text: string): readonly T[] {
  const keyed = objects.map((object) => ({ object, key: selectJsonPath(object, path)[0] }))
  if (objects.length > 0 && keyed.every(({ key }) => key === undefined)) {
    const message = `couldn't find any field with path ${JSON.stringify(text)} in the list of objects`
    throw new PoddError('JSONPATH_FAILED', message)
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
