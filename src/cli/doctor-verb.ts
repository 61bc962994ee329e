import type { DoctorFinding } from '../decide/host-facts.ts'
import { nearestName } from '../pod/nearest-name.ts'
import { configFlags, loadConfig } from './load-config.ts'
import type { FlagSpec, ParsedArguments } from './parse-arguments.ts'
import { Table } from './table.ts'
import { UsageError } from './usage-error.ts'
import type { Verb } from './verb.ts'

const formats = ['json', 'yaml'] as const

const outputFlag: FlagSpec = {
  name: 'output',
  short: 'o',
  label: formats.join('|'),
  doc: 'How to show it; a table where nothing is said.',
}

export const doctorVerb: Verb = {
  usage: 'doctor [-o json|yaml] [FLAGS]',
  help: `Checks what this host has and lacks for podd, and says how to mend it; works whether the daemon runs or not.
The exit code is 1 where something is missing that pods need. Takes the flags of \`podd run\`.`,
  flags: [outputFlag, ...configFlags],
  examples: [
    ['doctor', 'with the settings of the config file'],
    [
      'doctor --container-runtime-endpoint unix:///run/containerd/containerd.sock',
      "the host's own containerd",
    ],
    ['doctor -o json', 'for a program that watches over hosts'],
  ],
  async run({ args, deps, signal }) {
    const [extra] = args.positionals
    if (extra !== undefined) throw new UsageError(`doctor takes no argument ${JSON.stringify(extra)}`)
    const format = readFormat(args)
    const findings = await deps.doctor((await loadConfig(args)).config, signal)
    return {
      kind: 'text',
      text: await formatAs(format, findings),
      exitCode: findings.some(({ status }) => status === 'error') ? 1 : 0,
    }
  },
}

/** Throws UsageError. */
function readFormat(args: ParsedArguments): (typeof formats)[number] | undefined {
  const text = args.value('output')
  const found = formats.find((format) => format === text)
  if (text === undefined || found !== undefined) return found
  const near = nearestName(text, formats)
  throw new UsageError(
    `unknown output format ${JSON.stringify(text)}`,
    near === undefined ? 'There are json and yaml.' : `Did you mean ${near}?`,
  )
}

async function formatAs(
  format: (typeof formats)[number] | undefined,
  findings: readonly DoctorFinding[],
): Promise<string> {
  if (format === undefined) return formatFindings(findings)
  const report = { apiVersion: 'podd.dev/v1', kind: 'DoctorReport', items: findings }
  if (format === 'json') return `${JSON.stringify(report, undefined, 2)}\n`
  const { stringify } = await import('yaml')
  return stringify(report, { lineWidth: 0 })
}

function formatFindings(findings: readonly DoctorFinding[]): string {
  const rows = findings.flatMap(({ status, name, message, hint }) => [
    [status, name, message],
    ...(hint === undefined || status === 'ok'
      ? []
      : hint.split('\n').map((line) => ['', '', `fix: ${line}`])),
  ])
  const errors = findings.filter(({ status }) => status === 'error').length
  const warnings = findings.filter(({ status }) => status === 'warning').length
  const summary =
    errors + warnings === 0
      ? 'All is well.'
      : `${errors} ${errors === 1 ? 'error' : 'errors'}, ${warnings} ${warnings === 1 ? 'warning' : 'warnings'}`
  return `${new Table().layOut(rows)}${summary}\n`
}
