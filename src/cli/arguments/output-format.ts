import { nearestName } from '../../base/text.ts'
import type { FlagSpec, ParsedArguments } from './parse-arguments.ts'
import { UsageError } from './usage-error.ts'

const formats = ['table', 'wide', 'json', 'yaml', 'name'] as const

export type OutputFormat = (typeof formats)[number]

export const outputFlag: FlagSpec = {
  name: 'output',
  short: 'o',
  label: 'wide|json|yaml|name',
  doc: 'The output format; by default a table.',
}

/** Throws UsageError. */
export function readOutputFormat(args: ParsedArguments): OutputFormat {
  const text = args.value('output')
  if (text === undefined) return 'table'
  if (isOutputFormat(text)) return text
  throw unknownFormat(text, [])
}

export function isOutputFormat(text: string): text is OutputFormat {
  return text !== 'table' && formats.some((format) => format === text)
}

/** @param more the verb's formats in addition to the common ones */
export function unknownFormat(text: string, more: readonly string[]): UsageError {
  const known = [...formats.slice(1), ...more]
  const near = nearestName(
    text,
    known.map((name) => name.replace(/=.*/u, '')),
  )
  return new UsageError(
    `unknown output format ${JSON.stringify(text)}`,
    near === undefined
      ? `There are ${known.slice(0, -1).join(', ')} and ${known.at(-1)}.`
      : `Did you mean ${near}?`,
  )
}
