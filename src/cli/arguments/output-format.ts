import { nearestName } from '../../pod/values/nearest-name.ts'
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
  const found = formats.find((format) => format === text)
  if (found !== undefined && found !== 'table') return found
  const near = nearestName(text, formats.slice(1))
  throw new UsageError(
    `unknown output format ${JSON.stringify(text)}`,
    near === undefined ? 'There are wide, json, yaml and name.' : `Did you mean ${near}?`,
  )
}
