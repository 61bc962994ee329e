import { nearestName } from '../../base/text.ts'
import { formatJson, formatYaml } from './format-data.ts'
import type { FlagSpec, ParsedArguments } from '../arguments/parse-arguments.ts'
import { UsageError } from '../arguments/usage-error.ts'

/** The formats of reports, which are no lists of objects. */
const formats = ['json', 'yaml'] as const

export type ReportFormat = (typeof formats)[number]

/** `otherwise`: the default format. */
export function reportFlag(otherwise: string): FlagSpec {
  return {
    name: 'output',
    short: 'o',
    label: formats.join('|'),
    doc: `How to show it; ${otherwise} where nothing is said.`,
  }
}

/** Undefined by default. Throws UsageError. */
export function readReportFormat(args: ParsedArguments): ReportFormat | undefined {
  const text = args.value('output')
  const found = formats.find((format) => format === text)
  if (text === undefined || found !== undefined) return found
  const near = nearestName(text, formats)
  throw new UsageError(
    `unknown output format ${JSON.stringify(text)}`,
    near === undefined ? 'There are json and yaml.' : `Did you mean ${near}?`,
  )
}

/** The report as a podd.dev/v1 object of this kind. */
export async function formatReport(
  format: ReportFormat,
  kind: string,
  fields: Readonly<Record<string, unknown>>,
): Promise<string> {
  const report = { apiVersion: 'podd.dev/v1', kind, ...fields }
  return format === 'json' ? formatJson(report) : formatYaml(report)
}
