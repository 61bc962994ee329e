import { escapeControls, escapeLine } from '../../base/text.ts'
import { formatJson, formatYaml } from './format-data.ts'
import type { OutputFormat } from '../arguments/output-format.ts'
import { listOf, nameOfKind } from './object-listing.ts'
import type { Output } from './output.ts'
import { Table } from './table.ts'
import type { Listing, VerbResult } from '../arguments/verb.ts'

/** The output of results. */
export interface Printer {
  readonly output: Output
  /** One line on standard error. */
  readonly notify: (line: string) => void
}

/** Prints a verb's result; returns the exit code. */
export async function printResult(result: VerbResult, { output, notify }: Printer): Promise<number> {
  switch (result.kind) {
    case 'done':
      return result.exitCode
    case 'text':
      await output.write(escapeControls(result.text))
      for (const note of result.notes ?? []) notify(note)
      return result.exitCode ?? 0
    case 'chunks':
      for await (const chunk of result.chunks) {
        await output.write(chunk)
        if (output.closed.aborted) break
      }
      return 0
    case 'listing':
      await output.write(await formatListings(result.listings, result.format))
      for (const note of result.notes) notify(note)
      return result.exitCode ?? 0
    case 'watch':
      await printWatch(result.listings, result.format, output)
      return 0
  }
}

async function printWatch(
  listings: AsyncIterable<Listing>,
  format: OutputFormat,
  output: Output,
): Promise<void> {
  const table = new Table()
  let hasHeader = false
  for await (const listing of listings) {
    const isTable = format === 'table' || format === 'wide'
    if (isTable) {
      const noHeaders = hasHeader || listing.noHeaders === true
      const rows = tableRows({ ...listing, noHeaders, keepsTitles: false }, format)
      await output.write(table.layOut(rows))
      hasHeader ||= rows.length > 0
    } else {
      for (const object of listing.objects) {
        const text = await formatListing(
          { ...listing, objects: [object], listKind: undefined },
          format,
          table,
        )
        await output.write(format === 'yaml' ? `---\n${text}` : text)
      }
    }
    if (output.closed.aborted) return
  }
}

/** An empty line stands between tables with titles. */
async function formatListings(listings: readonly Listing[], format: OutputFormat): Promise<string> {
  const texts = await Promise.all(listings.map((listing) => formatListing(listing, format, new Table())))
  const separator = listings.some(({ noHeaders }) => noHeaders === true) ? '' : '\n'
  return texts.filter((text) => text !== '').join(separator)
}

async function formatListing(listing: Listing, format: OutputFormat, table: Table): Promise<string> {
  switch (format) {
    case 'table':
    case 'wide':
      return table.layOut(tableRows(listing, format))
    case 'name':
      return listing.objects
        .map((object) => `${escapeLine(`${nameOfKind(object)}/${object.metadata.name}`)}\n`)
        .join('')
    case 'json':
      return formatJson(document(listing))
    case 'yaml':
      return formatYaml(document(listing))
  }
}

/** The titles, where they are wanted, and the rows. */
function tableRows(listing: Listing, format: OutputFormat): readonly (readonly string[])[] {
  if (listing.rows.length === 0 && listing.keepsTitles !== true) return []
  const shown = listing.columns.flatMap((column, index) =>
    column.wide === true && format !== 'wide' ? [] : [index],
  )
  const header = listing.noHeaders === true ? [] : [listing.columns.map((column) => column.title)]
  return [...header, ...listing.rows].map((row) => shown.map((index) => row[index] ?? ''))
}

function document({ objects, listKind }: Listing): unknown {
  if (listKind === undefined) return objects[0]
  return listKind === 'List' ? listOf(objects) : { apiVersion: 'v1', kind: listKind, items: objects }
}
