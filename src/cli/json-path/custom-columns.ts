import { isJsonObject } from '../../base/json.ts'
import type { Listing, PrintableObject } from '../arguments/verb.ts'
import { UsageError } from '../arguments/usage-error.ts'
import type { JsonPath } from './parse-template.ts'
import { readJsonPath, selectJsonPath } from './select-path.ts'

/** A column of one's own. */
export interface CustomColumn {
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
