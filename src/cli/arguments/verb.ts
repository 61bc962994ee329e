import type { Writable } from 'node:stream'
import type { Clock } from '../../base/clock.ts'
import type { ApiClient } from '../client/client.ts'
import type { CliDeps } from './deps.ts'
import type { OutputFormat } from './output-format.ts'
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
  /** It handles SIGINT by itself. */
  readonly takesSignals?: boolean
  /** Throws UsageError for wrong arguments, any PoddError for what failed. */
  run(context: VerbContext): Promise<VerbResult>
}

/** One of the actions of a verb (`podd images pull`). */
export interface VerbAction {
  readonly name: string
  readonly aliases?: readonly string[]
  readonly verb: Verb
}

export interface HelpSection {
  readonly title: string
  readonly rows: readonly (readonly [name: string, doc: string])[]
}

/** The environment of a verb. */
export interface VerbContext {
  readonly args: ParsedArguments
  readonly client: ApiClient
  readonly deps: CliDeps
  readonly clock: Clock
  readonly env: Readonly<Record<string, string | undefined>>
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
  /** Only with `-o wide`. */
  readonly wide?: boolean
}

/** Objects with their rows in a table. */
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

/** A verb in the table of verbs. */
export interface VerbEntry {
  readonly name: string
  readonly aliases?: readonly string[]
  /** One line for `podd --help`. */
  readonly summary: string
  /** Loads the verb's code: a call pays only for the verb it names. */
  load(): Promise<Verb>
}
