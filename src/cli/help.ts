import { wrap } from './output/table.ts'
import type { FlagSpec } from './arguments/parse-arguments.ts'
import type { Verb, VerbEntry } from './arguments/verb.ts'

/** Flags that every verb takes. */
export const globalFlags: readonly FlagSpec[] = [
  {
    name: 'socket',
    label: 'PATH',
    doc: "The daemon's socket; by default PODD_SOCKET, or /run/podd/podd.sock.",
  },
  { name: 'help', short: 'h', doc: 'Show this help.' },
]

/** @param width of the terminal; undefined where it is none */
export function programHelp(verbs: readonly VerbEntry[], width?: number): string {
  return [
    'podd runs Kubernetes Pods on one Linux host with no control plane.',
    '',
    'Usage: podd VERB [ARGUMENTS]',
    '',
    ...indent(
      verbs.map((verb) => [verb.name, verb.summary]),
      lineWidth(width),
    ),
    '',
    'Flags of every verb:',
    ...indent(
      globalFlags.map((flag) => [formatFlag(flag), flag.doc]),
      lineWidth(width),
    ),
    '',
    '`podd VERB --help` tells more. Exit codes: 0 done, 1 it failed, 2 wrong usage.',
    '',
  ].join('\n')
}

/** @param width of the terminal; undefined where it is none */
export function verbHelp(verb: Verb, width?: number): string {
  const most = lineWidth(width)
  return [
    ...flow(verb.help, most),
    '',
    ...hang(`Usage: podd ${verb.usage}`, most),
    '',
    'Flags:',
    ...indent(
      [...verb.flags, ...globalFlags].map((flag) => [formatFlag(flag), flag.doc]),
      most,
    ),
    ...(verb.actions === undefined
      ? []
      : [
          '',
          'Actions:',
          ...indent(
            verb.actions.map((action) => [action.verb.usage, summaryOf(action.verb)]),
            most,
          ),
        ]),
    ...(verb.more === undefined ? [] : ['', `${verb.more.title}:`, ...indent(verb.more.rows, most)]),
    ...(verb.examples.length === 0
      ? []
      : [
          '',
          'Examples:',
          ...indent(
            verb.examples.map(([command, does]) => [`podd ${command}`, does]),
            most,
          ),
        ]),
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

const widestLine = 110
const narrowestLine = 40

function lineWidth(width: number | undefined): number {
  return Math.max(narrowestLine, Math.min(widestLine, width ?? widestLine))
}

/** Rewraps paragraphs; indented lines stay as they are. */
function flow(text: string, most: number): readonly string[] {
  const paragraphs = text
    .split('\n\n')
    .map((paragraph) =>
      /^\s/mu.test(paragraph) ? paragraph.split('\n') : wrap(paragraph.replaceAll('\n', ' '), most),
    )
  return paragraphs.flatMap((lines) => [''].concat(lines)).slice(1)
}

/** A line whose continuation lines are indented further. */
function hang(line: string, most: number): readonly string[] {
  const [head = '', ...rest] = wrap(line, most - 4)
  return [head, ...rest.map((next) => `    ${next}`)]
}

/** Two columns, the second one wrapped; a first one that is too wide gets a line of its own. */
function indent(rows: readonly (readonly [string, string])[], most: number): readonly string[] {
  const width = Math.min(Math.floor(most * 0.31), Math.max(...rows.map(([first]) => first.length)))
  return rows.flatMap(([first, second]) => {
    const [head = '', ...rest] = wrap(second, most - width - 4)
    const below = rest.map((line) => `${' '.repeat(width + 4)}${line}`)
    if (first.length > width) return [`  ${first}`, `${' '.repeat(width + 4)}${head}`.trimEnd(), ...below]
    return [`  ${first.padEnd(width)}  ${head}`.trimEnd(), ...below]
  })
}
