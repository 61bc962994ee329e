import { errorMessage, PoddError } from '../../base/errors.ts'
import { escapeJson, escapeLine } from '../../base/text.ts'
import type { Problem } from '../../pod/objects/document.ts'
import { nearestOr, UsageError } from '../arguments/parse-arguments.ts'
import type { FlagSpec, ParsedArguments } from '../arguments/parse-arguments.ts'

/** The formats of reports, which are no lists of objects. */
const formats = ['json', 'yaml'] as const

type ReportFormat = (typeof formats)[number]

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
  const hint = nearestOr(text, formats, 'There are json and yaml.')
  throw new UsageError(`unknown output format ${JSON.stringify(text)}`, hint)
}

/** The report as a podd.dev/v1 object of this kind; without a format as the text for people. */
export async function formatReport(
  format: ReportFormat | undefined,
  kind: string,
  fields: Readonly<Record<string, unknown>>,
  text: () => string,
): Promise<string> {
  if (format === undefined) return text()
  const report = { apiVersion: 'podd.dev/v1', kind, ...fields }
  return format === 'json' ? formatJson(report) : formatYaml(report)
}

/** JSON in which invisible characters are escaped. */
export function formatJson(value: unknown): string {
  return `${escapeJson(JSON.stringify(value, undefined, 2))}\n`
}

export async function formatYaml(value: unknown): Promise<string> {
  return (await import('./format-yaml.ts')).formatYaml(value)
}

export function formatError(error: unknown): string {
  const message = `podd: ${errorMessage(error)}`
  if (error instanceof PoddError) return error.hint === undefined ? message : `${message}\n${error.hint}`
  // A defect in podd: a report needs the stack.
  return error instanceof Error && error.stack !== undefined ? `podd: ${error.stack}` : message
}

/** One line for people: `pods/web.yaml:7:5: spec.containers[0].image: Required value (hint)`. */
export function formatProblem({ place, field, message, hint }: Problem): string {
  const at = [place.path, place.line, place.column].filter((part) => part !== undefined).join(':')
  const what = field === undefined ? message : `${field}: ${message}`
  return escapeLine(hint === undefined ? `${at}: ${what}` : `${at}: ${what} (${hint})`)
}
