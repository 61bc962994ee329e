import type { Writable } from 'node:stream'
import type { Clock } from '../../base/clock.ts'
import type { PoddConfig } from '../../config/options.ts'
import type { UsualPlaces } from '../../config/places.ts'
import type { DoctorFinding } from '../../decide/doctor/doctor-finding.ts'
import type { Problem } from '../../pod/objects/document.ts'
import type { ApiClient } from '../client/client.ts'
import { nearestOr, UsageError } from './parse-arguments.ts'
import type { FlagSpec, ParsedArguments } from './parse-arguments.ts'

/** One command of the CLI: declares its arguments, makes one call, returns data. */
export interface Verb {
  /** Its usage after `podd`, as in the help: `logs POD [-c CONTAINER]`. */
  readonly usage: string
  /** Its description in `--help`. */
  readonly help: string
  readonly flags: readonly FlagSpec[]
  /** Further sections of its `--help`, after the flags. */
  readonly more?: HelpSection
  /** Command lines without `podd`, each with what it does. */
  readonly examples: readonly (readonly [command: string, does: string])[]
  /** Subcommands, by their word; this verb's help is then common to them, and `run` is called without such a word. */
  readonly actions?: readonly VerbAction[]
  /** What stands after its first word is a command, which must follow `--`. */
  readonly takesCommand?: true
  /** It handles SIGINT by itself. */
  readonly takesSignals?: boolean
  /** Throws UsageError for wrong arguments, any PoddError for what failed. */
  run(context: VerbContext): Promise<VerbResult>
}

interface VerbAction {
  readonly name: string
  readonly aliases?: readonly string[]
  readonly verb: Verb
}

export interface HelpSection {
  readonly title: string
  readonly rows: readonly (readonly [name: string, doc: string])[]
}

export interface VerbContext {
  readonly args: ParsedArguments
  readonly client: ApiClient
  readonly daemon: DaemonActions
  readonly clock: Clock
  readonly env: Readonly<Record<string, string | undefined>>
  readonly usual: UsualPlaces
  /** Aborted by Ctrl-C, and when the output is closed. */
  readonly signal: AbortSignal
  /** The streams themselves, for interactive verbs. */
  readonly stdio: {
    readonly stdin: AsyncIterable<Uint8Array | string>
    readonly stdout: Writable
    readonly stderr: Writable
  }
  /** One line on standard error, at once. */
  readonly notify: (line: string) => void
}

/** The fields of an API object that printing needs. */
export interface PrintableObject {
  /** Left out of what is no object of the API. */
  readonly apiVersion?: string
  readonly kind: string
  readonly metadata: { readonly name: string }
}

export interface Column {
  readonly title: string
  /** Its cells say how something is: they have a colour on a terminal. */
  readonly isState?: boolean
  /** Only with `-o wide`. */
  readonly wide?: boolean
}

export interface Listing {
  readonly columns: readonly Column[]
  readonly rows: readonly (readonly string[])[]
  /** The objects for `-o json`, `yaml` and `name`. */
  readonly objects: readonly PrintableObject[]
  /** The kind of list the objects make: `List` of Kubernetes' objects; a single object stands for itself. */
  readonly listKind: string | undefined
  /** Whether a table of it has no line of titles. */
  readonly noHeaders?: boolean
  /** Whether a table without rows has its titles, unless it has none ever. */
  readonly keepsTitles?: boolean
}

export type VerbResult =
  | { readonly kind: 'done'; readonly exitCode: number }
  | {
      readonly kind: 'text'
      readonly text: string
      /** For standard error, after the text. */
      readonly notes?: readonly string[]
      readonly exitCode?: number
    }
  | {
      readonly kind: 'listing'
      /** Tables stand one below the other; in other formats there is one. */
      readonly listings: readonly Listing[]
      readonly format: OutputFormat
      /** For standard error, after the listing. */
      readonly notes: readonly string[]
      /** By default 0. */
      readonly exitCode?: number
    }
  /** Incremental listings: one header, then rows as they arrive. */
  | { readonly kind: 'watch'; readonly listings: AsyncIterable<Listing>; readonly format: OutputFormat }
  | { readonly kind: 'chunks'; readonly chunks: AsyncIterable<Uint8Array> }

export interface VerbEntry {
  readonly name: string
  readonly aliases?: readonly string[]
  /** One line for `podd --help`. */
  readonly summary: string
  /** Loads the verb's code: a call pays only for the verb it names. */
  load(): Promise<Verb>
}

/** The checked and complete request of `podd run`. */
export interface RunRequest {
  readonly config: PoddConfig
  /** The file that was read, if there is one. */
  readonly configPath: string | undefined
  /** Warnings for the log: ignored fields of the file. */
  readonly warnings: readonly Problem[]
}

export interface DownRequest {
  readonly config: PoddConfig
  /** A given socket: the daemon there must be the one that uses these places. */
  readonly socketPath?: string
  /** Overrides each pod's own grace period. */
  readonly graceSeconds: number | undefined
  /** Whether pods of the API that have completed or failed for good are removed too. */
  readonly removesEnded: boolean
  readonly signal: AbortSignal
  /** Called with one line for each step, as it happens. */
  readonly report: (line: string) => void
}

export interface DownResult {
  readonly podsStopped: number
  /** What could not be ended or cleaned up, one line each. */
  readonly leftovers: readonly string[]
}

/** What needs the daemon's or the runtime's code, which main.ts loads when it is called. */
export interface DaemonActions {
  /** Runs until it is stopped; returns the exit code. */
  startDaemon(request: RunRequest): Promise<number>
  /** Ends all pods, then the embedded containerd; works whether a daemon runs or not. */
  down(request: DownRequest): Promise<DownResult>
  /**
   * Examines the host; returns one finding for each check.
   * @param options.isOther the config has the places of a running podd, and is not the one that it was started with
   */
  doctor(
    config: PoddConfig,
    signal: AbortSignal,
    options?: { readonly isOther: boolean },
  ): Promise<readonly DoctorFinding[]>
}

const formats = ['table', 'wide', 'json', 'yaml', 'name'] as const

export type OutputFormat = (typeof formats)[number]

export const outputFlag: FlagSpec = {
  name: 'output',
  short: 'o',
  label: 'wide|json|yaml|name',
  doc: 'The output format; by default a table.',
}

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
  return new UsageError(
    `unknown output format ${JSON.stringify(text)}`,
    nearestOr(
      text,
      known.map((name) => name.replace(/=.*/u, '')),
      `There are ${known.slice(0, -1).join(', ')} and ${known.at(-1)}.`,
    ),
  )
}

export const noHeadersFlag: FlagSpec = { name: 'no-headers', doc: 'Leaves the line of titles out of tables.' }

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
  const labelColumns = args
    .values('label-columns')
    .flatMap((text) => text.split(',').filter((key) => key !== ''))
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
