import type { ResourceObject } from '../../api/resource.ts'
import { isOutputFormat, unknownFormat } from '../arguments/output-format.ts'
import { UsageError } from '../arguments/usage-error.ts'
import type { Listing } from '../arguments/verb.ts'

/** What `-o` says of how objects look, beside the formats that every verb has. */
export type CustomOutput =
  | { readonly kind: 'columns'; readonly list: (objects: readonly ResourceObject[]) => Listing }
  | { readonly kind: 'jsonPath'; readonly print: (value: unknown) => string }

const formats = ['jsonpath=TEMPLATE', 'jsonpath-as-json=TEMPLATE', 'custom-columns=TITLE:PATH,…']
const example =
  "Write -o jsonpath='{.items[*].metadata.name}', or of one object -o jsonpath='{.status.phase}'."

/**
 * The output that a template describes; undefined for the formats that every verb has. A wrong one is refused before
 * anybody is asked. Throws UsageError.
 */
export async function readCustomOutput(text: string | undefined): Promise<CustomOutput | undefined> {
  if (text === undefined || isOutputFormat(text)) return undefined
  const [, name = '', rest = ''] = /^([^=]*)=?(.*)$/su.exec(text) ?? []
  switch (name) {
    case 'jsonpath':
    case 'jsonpath-as-json': {
      if (rest === '') throw new UsageError('template format specified but no template given', example)
      const { printTemplate, printTemplateAsJson, readTemplate } =
        await import('../json-path/print-template.ts')
      const template = readTemplate(rest)
      const print = name === 'jsonpath' ? printTemplate : printTemplateAsJson
      return { kind: 'jsonPath', print: (value) => print(template, value) }
    }
    case 'custom-columns': {
      const { customListing, readCustomColumns } = await import('../json-path/custom-columns.ts')
      const columns = readCustomColumns(rest)
      return { kind: 'columns', list: (objects) => customListing(columns, objects) }
    }
    case 'template':
    case 'go-template':
      throw new UsageError('podd reads no Go templates', example)
    default:
      throw unknownFormat(name, formats)
  }
}
