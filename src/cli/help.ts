import type { FlagSpec } from './arguments/parse-arguments.ts'
import type { Verb } from './arguments/verb.ts'
import type { VerbEntry } from './verbs.ts'

/** Flags that every verb takes. */
export const globalFlags: readonly FlagSpec[] = [
  {
    name: 'socket',
    label: 'PATH',
    doc: "The daemon's socket; by default PODD_SOCKET, or /run/podd/podd.sock.",
  },
  { name: 'help', short: 'h', doc: 'Show this help.' },
]

export function programHelp(verbs: readonly VerbEntry[]): string {
  return [
    'podd runs Kubernetes Pods on one Linux host with no control plane.',
    '',
    'Usage: podd VERB [ARGUMENTS]',
    '',
    ...indent(verbs.map((verb) => [verb.name, verb.summary])),
    '',
    'Flags of every verb:',
    ...indent(globalFlags.map((flag) => [formatFlag(flag), flag.doc])),
    '',
    '`podd VERB --help` tells more. Exit codes: 0 done, 1 it failed, 2 wrong usage.',
    '',
  ].join('\n')
}

export function verbHelp(verb: Verb): string {
  return [
    verb.help,
    '',
    `Usage: podd ${verb.usage}`,
    '',
    'Flags:',
    ...indent([...verb.flags, ...globalFlags].map((flag) => [formatFlag(flag), flag.doc])),
    ...(verb.actions === undefined
      ? []
      : [
          '',
          'Actions:',
          ...indent(verb.actions.map((action) => [action.verb.usage, summaryOf(action.verb)])),
        ]),
    ...(verb.more === undefined ? [] : ['', `${verb.more.title}:`, ...indent(verb.more.rows)]),
    ...(verb.examples.length === 0
      ? []
      : ['', 'Examples:', ...indent(verb.examples.map(([command, does]) => [`podd ${command}`, does]))]),
    '',
  ].join('\n')
}

/** The first sentence of its help. */
function summaryOf({ help }: Verb): string {
  return help.replaceAll('\n', ' ').split('. ')[0]?.replace(/\.$/u, '') ?? ''
}

function formatFlag({ name, short, label }: FlagSpec): string {
  const long = label === undefined ? `--${name}` : `--${name} ${label}`
  return short === undefined ? `    ${long}` : `-${short}, ${long}`
}

const widestFirst = 34
const widestLine = 110

/** Two columns, the second one wrapped; a first one that is too wide has a line of its own. */
function indent(rows: readonly (readonly [string, string])[]): readonly string[] {
  const width = Math.min(widestFirst, Math.max(...rows.map(([first]) => first.length)))
  return rows.flatMap(([first, second]) => {
    const [head = '', ...rest] = wrap(second, widestLine - width - 4)
    const below = rest.map((line) => `${' '.repeat(width + 4)}${line}`)
    if (first.length > width) return [`  ${first}`, `${' '.repeat(width + 4)}${head}`.trimEnd(), ...below]
    return [`  ${first.padEnd(width)}  ${head}`.trimEnd(), ...below]
  })
}

function wrap(text: string, width: number): readonly string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + 1 + word.length <= width)
      lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines
}
