import { wrap } from './output/table.ts'
import type { FlagSpec } from './arguments/parse-arguments.ts'
import type { HelpSection, Verb, VerbEntry } from './arguments/verb.ts'

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
  const rows: HelpSection['rows'] = verbs.map(({ name, summary }) => [name, summary])
  return [
    'podd runs Kubernetes Pods on one Linux host with no control plane.',
    '',
    'Usage: podd VERB [ARGUMENTS]',
    '',
    ...indent(rows, lineWidth(width)),
    ...layOut([{ title: 'Flags of every verb', rows: flagRows(globalFlags) }], lineWidth(width)),
    '',
    '`podd VERB --help` tells more. Exit codes: 0 done, 1 it failed, 2 wrong usage.',
    '',
  ].join('\n')
}

/** @param width of the terminal; undefined where it is none */
export function verbHelp(verb: Verb, width?: number): string {
  const { help, usage, flags, actions = [], more, examples } = verb
  const most = lineWidth(width)
  const isWithOptions = flags.some(({ isOfRun }) => isOfRun === true)
  const ofRun: HelpSection['rows'] = isWithOptions ? [['    --…', 'The other flags of `podd run`.']] : []
  const sections: readonly HelpSection[] = [
    {
      title: 'Flags',
      rows: [...flagRows([...flags.filter(({ isOfRun }) => isOfRun !== true), ...globalFlags]), ...ofRun],
    },
    { title: 'Actions', rows: actions.map(({ verb: action }) => [action.usage, summaryOf(action)]) },
    ...(more === undefined ? [] : [more]),
    { title: 'Examples', rows: examples.map(([command, does]) => [`podd ${command}`, does]) },
  ]
  return [...flow(help, most), '', ...hang(`Usage: podd ${usage}`, most), ...layOut(sections, most), ''].join(
    '\n',
  )
}

/** An empty line stands before each section; one without rows is left out. */
function layOut(sections: readonly HelpSection[], most: number): readonly string[] {
  return sections.flatMap(({ title, rows }) =>
    rows.length === 0 ? [] : ['', `${title}:`, ...indent(rows, most)],
  )
}

function flagRows(flags: readonly FlagSpec[]): HelpSection['rows'] {
  return flags.map((flag) => [formatFlag(flag), flag.doc])
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
function indent(rows: HelpSection['rows'], most: number): readonly string[] {
  const width = Math.min(Math.floor(most * 0.31), Math.max(...rows.map(([first]) => first.length)))
  return rows.flatMap(([first, second]) => {
    const [head = '', ...rest] = wrap(second, most - width - 4)
    const below = rest.map((line) => `${' '.repeat(width + 4)}${line}`)
    if (first.length > width) return [`  ${first}`, `${' '.repeat(width + 4)}${head}`.trimEnd(), ...below]
    return [`  ${first.padEnd(width)}  ${head}`.trimEnd(), ...below]
  })
}
