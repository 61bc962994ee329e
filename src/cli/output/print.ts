import type { Writable } from 'node:stream'
import { splitApiVersion } from '../../api/resource.ts'
import type { ResourceObject } from '../../api/resource.ts'
import type { DaemonStatus } from '../../api/routes.ts'
import { columnsFor } from '../../api/served-kind.ts'
import type { KindColumn, ServedKind } from '../../api/served-kind.ts'
import { errorCode, errorMessage, PoddError } from '../../base/errors.ts'
import { entriesOf } from '../../base/json.ts'
import { escapeControls, escapeLine } from '../../base/text.ts'
import type {
  Column,
  Listing,
  OutputFormat,
  PrintableObject,
  TableStyle,
  VerbResult,
} from '../arguments/verb.ts'
import { formatJson, formatProblem, formatYaml } from './report-format.ts'
import { counted, paintState, shorten, Table } from './table.ts'

interface Printer {
  readonly output: Output
  /** One line on standard error. */
  readonly notify: (line: string) => void
  /** Whether states have a colour. */
  readonly hasColours: boolean
}

/** Prints a verb's result; returns the exit code. */
export async function printResult(
  result: VerbResult,
  { output, notify, hasColours }: Printer,
): Promise<number> {
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
      await output.write(await formatListings(result.listings, result.format, hasColours))
      for (const note of result.notes) notify(note)
      return result.exitCode ?? 0
    case 'watch':
      await printWatch(result.listings, result.format, output, hasColours)
      return 0
  }
}

async function printWatch(
  listings: AsyncIterable<Listing>,
  format: OutputFormat,
  output: Output,
  hasColours: boolean,
): Promise<void> {
  const table = new Table()
  let hasHeader = false
  for await (const listing of listings) {
    const isTable = format === 'table' || format === 'wide'
    if (isTable) {
      const noHeaders = hasHeader || listing.noHeaders === true
      const shown = { ...listing, noHeaders, keepsTitles: false }
      const text = formatTable(shown, format, table, hasColours)
      await output.write(text)
      hasHeader ||= text !== ''
    } else {
      for (const object of listing.objects) {
        const single = { ...listing, objects: [object], listKind: undefined }
        const text = await formatListing(single, format, table, false)
        await output.write(format === 'yaml' ? `---\n${text}` : text)
      }
    }
    if (output.closed.aborted) return
  }
}

/** An empty line stands between tables with titles. */
async function formatListings(
  listings: readonly Listing[],
  format: OutputFormat,
  hasColours: boolean,
): Promise<string> {
  const texts = await Promise.all(
    listings.map((listing) => formatListing(listing, format, new Table(), hasColours)),
  )
  const separator = listings.some(({ noHeaders }) => noHeaders === true) ? '' : '\n'
  return texts.filter((text) => text !== '').join(separator)
}

async function formatListing(
  listing: Listing,
  format: OutputFormat,
  table: Table,
  hasColours: boolean,
): Promise<string> {
  switch (format) {
    case 'table':
    case 'wide':
      return formatTable(listing, format, table, hasColours)
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

function formatTable(listing: Listing, format: OutputFormat, table: Table, hasColours: boolean): string {
  if (listing.rows.length === 0 && listing.keepsTitles !== true) return ''
  const shown = listing.columns.flatMap((column, index) =>
    column.wide === true && format !== 'wide' ? [] : [{ column, index }],
  )
  const header = listing.noHeaders === true ? [] : [listing.columns.map((column) => column.title)]
  const rows = [...header, ...listing.rows].map((row) => shown.map(({ index }) => row[index] ?? ''))
  const states = shown.map(({ column }) => (hasColours && column.isState === true ? column.title : undefined))
  return table.layOut(rows, (cell, at) =>
    states[at] === undefined || cell === states[at] ? cell : paintState(cell),
  )
}

function document({ objects, listKind }: Listing): unknown {
  if (listKind === undefined) return objects[0]
  return listKind === 'List' ? listOf(objects) : { apiVersion: 'v1', kind: listKind, items: objects }
}

export interface Output {
  /** Resolves once the data is written; does nothing after a write has failed. */
  write(data: string | Uint8Array): Promise<void>
  /** Aborted when nothing more can be written: the pipe is closed (`podd logs -f | head`), or the disk full. */
  readonly closed: AbortSignal
  /** Why something was not written: WRITE_FAILED; undefined where the reader has closed the pipe. */
  failure(): PoddError | undefined
}

export function createOutput(stream: Writable): Output {
  const closed = new AbortController()
  let failure: PoddError | undefined
  const onFailure = (error: unknown): void => {
    if (closed.signal.aborted) return
    if (errorCode(error) !== 'EPIPE') failure = writeFailed(error)
    closed.abort()
  }
  stream.on('error', onFailure)
  return {
    closed: closed.signal,
    failure: () => failure,
    async write(data) {
      if (closed.signal.aborted) return
      await new Promise<void>((resolve) => {
        stream.write(data, (error) => {
          if (error instanceof Error) onFailure(error)
          resolve()
        })
      })
    },
  }
}

function writeFailed(cause: unknown): PoddError {
  const why =
    cause instanceof Error && 'errno' in cause && typeof cause.errno === 'number'
      ? process.getBuiltinModule('node:util').getSystemErrorMessage(cause.errno)
      : errorMessage(cause)
  return new PoddError('WRITE_FAILED', `write error: ${why}`, { cause })
}

/** @param wide the titles of columns only with `-o wide` */
export function titled(titles: readonly string[], wide: readonly string[] = []): readonly Column[] {
  return [...titles.map((title) => ({ title })), ...wide.map((title) => ({ title, wide: true }))]
}

export function listObjects(
  kind: ServedKind,
  objects: readonly ResourceObject[],
  { labelColumns, showLabels, showKind, noHeaders }: TableStyle,
  {
    nowMs,
    isSingle,
    ...shown
  }: {
    readonly withNamespace: boolean
    readonly nowMs: number
    /** Whether a single requested object is shown without a list in JSON and YAML. */
    readonly isSingle: boolean
  },
): Listing {
  const withNamespace = shown.withNamespace && kind.namespaced
  const columns = columnsFor('podd', kind)
  const cellOf = ({ name, cell }: KindColumn, object: ResourceObject): string => {
    const text = String(cell(object, nowMs))
    return showKind && name === 'Name' ? `${nameOfKind(kind)}/${text}` : text
  }
  return {
    noHeaders,
    columns: [
      ...(withNamespace ? [{ title: 'NAMESPACE' }] : []),
      ...columns.map(({ name, wide = false }) => ({
        title: name.toUpperCase(),
        wide,
        ...(name === 'Status' && kind.resource !== 'events' && { isState: true }),
      })),
      ...labelColumns.map((key) => ({ title: key.slice(key.lastIndexOf('/') + 1).toUpperCase() })),
      ...(showLabels ? [{ title: 'LABELS' }] : []),
    ],
    rows: objects.map((object) => [
      ...(withNamespace ? [object.metadata.namespace ?? ''] : []),
      ...columns.map((column) => cellOf(column, object)),
      ...labelColumns.map((key) => object.metadata.labels?.[key] ?? ''),
      ...(showLabels ? [entriesOf(object.metadata.labels, '=').join(',') || '<none>'] : []),
    ]),
    objects,
    listKind: isSingle ? undefined : 'List',
  }
}

/** The list that kubectl shows objects in, whatever their kinds are (kubectl `cmd/get/get.go` printGeneric, 1.36). */
export function listOf(items: readonly PrintableObject[]): object {
  return { apiVersion: 'v1', items, kind: 'List', metadata: { resourceVersion: '' } }
}

/** As in `-o name`: the kind, with its group where that is one of Kubernetes'. */
function nameOfKind({ kind, apiVersion = 'v1' }: Omit<PrintableObject, 'metadata'>): string {
  const { group } = splitApiVersion(apiVersion)
  const isPlain = group === '' || group === 'podd.dev'
  return isPlain ? kind.toLowerCase() : `${kind.toLowerCase()}.${group}`
}

/** Of the daemon: bad manifests, unread sources, an unavailable runtime. */
export function daemonNotes(status: DaemonStatus): readonly string[] {
  const problems = status.problems.map((problem) => `${problem.severity}: ${formatProblem(problem)}`)
  return [...problems, ...stateNotes(status)]
}

/** So many problems about pods leave the table of these on a screen of 24 lines. */
const maxShown = 5

/**
 * The same beside pods: several problems are counted, so that the pods stay on the screen, but for those about pods that are
 * shown, and run by an older version.
 * @param pods by their keys
 */
export function daemonSummary(status: DaemonStatus, pods: ReadonlySet<string>): readonly string[] {
  const [, second] = status.problems
  if (second === undefined) return daemonNotes(status)
  const shown = status.problems
    .filter(({ object, severity }) => object !== undefined && severity === 'error' && pods.has(object))
    .slice(0, maxShown)
  const rest = status.problems.filter((problem) => !shown.includes(problem))
  const errors = rest.filter(({ severity }) => severity === 'error').length
  const warnings = rest.length - errors
  const counts = [
    ...(errors === 0 ? [] : [counted(errors, 'error')]),
    ...(warnings === 0 ? [] : [counted(warnings, 'warning')]),
  ]
  const more = shown.length === 0 ? '' : ' more'
  const count = `${counts.join(' and ')}${more} in manifests: \`podd status\` lists them`
  return [
    ...shown.map((problem) => shorten(`error: ${formatProblem(problem)}`)),
    ...(rest.length === 0 ? [] : [`${errors === 0 ? 'warning' : 'error'}: ${count}`]),
    ...stateNotes(status),
  ]
}

function stateNotes({ runtime, sources }: DaemonStatus): readonly string[] {
  return [
    ...sources
      .filter((source) => !source.ready)
      .map(
        ({ source, path }) =>
          `warning: ${path} has not been read yet (source ${source}); pods that were removed before podd started run until it is`,
      ),
    ...(runtime.healthy && runtime.message !== undefined ? [`warning: ${runtime.message}`] : []),
    ...(runtime.healthy
      ? []
      : [`warning: ${runtimeWords(runtime.endpoint)} does not work: ${runtime.message ?? 'no answer'}`]),
  ]
}

function runtimeWords(endpoint: string): string {
  return endpoint === 'embedded' ? 'the embedded containerd' : `the container runtime at ${endpoint}`
}
