import type { Listing, PrintableObject } from '../arguments/verb.ts'
import { UsageError } from '../arguments/usage-error.ts'
import { readJsonPath, selectJsonPath } from './json-path.ts'
import { formatValue } from './json-path-template.ts'

/**
 * The table of `-o custom-columns=NAME:.metadata.name,…`; absent values are `<none>`, and values of one path are
 * separated by commas (kubectl `cmd/get/customcolumn.go`, 1.36). Throws UsageError.
 */
export function customListing(spec: string, objects: readonly PrintableObject[]): Listing {
  const columns = spec.split(',').map((part) => {
    const colon = part.indexOf(':')
    if (colon < 1 || colon === part.length - 1) {
      throw new UsageError(
        `unexpected custom-columns spec: ${part}, expected <header>:<json-path-expr>`,
        'Write -o custom-columns=NAME:.metadata.name,PHASE:.status.phase',
      )
    }
    return { title: part.slice(0, colon), path: readJsonPath(part.slice(colon + 1)) }
  })
  const cell = (object: PrintableObject, path: ReturnType<typeof readJsonPath>): string => {
    const values = selectJsonPath(object, path)
    return values.length === 0 ? '<none>' : values.map((value) => formatValue(value)).join(',')
  }
  return {
    columns: columns.map(({ title }) => ({ title })),
    rows: objects.map((object) => columns.map(({ path }) => cell(object, path))),
    objects,
    listKind: undefined,
  }
}
