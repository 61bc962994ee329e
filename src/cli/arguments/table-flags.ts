import type { FlagSpec, ParsedArguments } from './parse-arguments.ts'
import { UsageError } from './usage-error.ts'

export const noHeadersFlag: FlagSpec = { name: 'no-headers', doc: 'Leaves the line of titles out of tables.' }

/** What changes the tables of objects. */
export const tableFlags: readonly FlagSpec[] = [
  noHeadersFlag,
  { name: 'show-labels', doc: 'Adds a column with all labels.' },
  {
    name: 'label-columns',
    short: 'L',
    label: 'KEY,…',
    doc: 'Adds a column for each of these labels. May be given more than once.',
  },
  { name: 'show-kind', doc: 'Names objects with their kind: pod/web.' },
]

/** How a table of objects differs from the usual one. */
export interface TableStyle {
  readonly noHeaders: boolean
  readonly showLabels: boolean
  readonly labelColumns: readonly string[]
  readonly showKind: boolean
}

/**
 * Throws UsageError where the format is no table (kubectl `cmd/get/get.go` Validate, 1.36).
 * @param format the word of `-o`
 */
export function readTableStyle(args: ParsedArguments, format: string): TableStyle {
  const labelColumns = args.flags
    .flatMap(({ flag, text }) => (flag === 'label-columns' ? text.split(',') : []))
    .filter((key) => key !== '')
  const showLabels = args.has('show-labels')
  if (showLabels && format !== 'table' && format !== 'wide')
    throw new UsageError(`--show-labels option cannot be used with ${format} printer`)
  if (labelColumns.length > 0 && format === 'custom-columns')
    throw new UsageError(
      '--label-columns option cannot be used with custom-columns printer',
      'Write -o custom-columns=APP:.metadata.labels.app',
    )
  return { noHeaders: args.has('no-headers'), showLabels, labelColumns, showKind: args.has('show-kind') }
}
