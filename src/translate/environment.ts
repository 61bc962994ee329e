/* References in commands and variables, expanded within exec(2)'s limits. */
import { PoddError } from '../base/errors.ts'
import type { ContainerSpec } from '../pod/schema/container-schema.ts'

/** The values of `$(NAME)`. */
export type Environment = ReadonlyMap<string, string>

type Part =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'reference'; readonly name: string; readonly written: string }

/**
 * Splits a text into `$(NAME)` references and the text between them, as the kubelet does
 * (`third_party/forked/golang/expansion`, 1.36): `$$` is one `$`, an unclosed reference is text.
 */
export function* splitReferences(text: string): Generator<Part, void> {
  let at = 0
  // Searching again at each `$(` for a missing bracket would take quadratic time.
  let lastClose: number | undefined
  while (at < text.length) {
    const dollar = text.indexOf('$', at)
    if (dollar !== at) yield { kind: 'text', text: text.slice(at, dollar < 0 ? undefined : dollar) }
    if (dollar < 0) return
    const next = text[dollar + 1]
    if (next === '(') lastClose ??= text.lastIndexOf(')')
    if (next === '(' && lastClose !== undefined && lastClose > dollar) {
      const close = text.indexOf(')', dollar)
      const written = text.slice(dollar, close + 1)
      yield { kind: 'reference', name: written.slice(2, -1), written }
      at = close + 1
    } else {
      yield { kind: 'text', text: '$' }
      at = dollar + (next === '$' ? 2 : 1)
    }
  }
}

/**
 * Expands `$(NAME)` references: an unknown one stays as written, and values are not expanded again.
 * @param maxBytes what neither the text nor what it gives may take in UTF-8
 * @returns undefined where it would be more
 */
export function expandReferences(
  text: string,
  environment: Pick<Environment, 'get'>,
  maxBytes: number,
): string | undefined {
  // A character takes one byte or more.
  if (text.length > maxBytes) return undefined
  let expanded = ''
  for (const part of splitReferences(text)) {
    expanded += part.kind === 'text' ? part.text : (environment.get(part.name) ?? part.written)
    if (expanded.length > maxBytes) return undefined
  }
  return Buffer.byteLength(expanded) > maxBytes ? undefined : expanded
}

/** exec(2)'s limits of arguments and environment. */
export interface ExecLimits {
  /** Of one argument or variable, with its NUL. */
  readonly stringBytes: number
  /** Of all together, each with its NUL and its pointer. */
  readonly totalBytes: number
}

const pointerBytes = 8
/** bprm_stack_limits (fs/exec.c, Linux 6.12): three quarters of 8 MiB, even where the stack has no limit. */
const totalBytes = 6 * 1024 * 1024
const longestNameShown = 100

/**
 * The limits of a host. A string may take 32 pages (MAX_ARG_STRLEN, include/uapi/linux/binfmts.h). Where the stack's
 * limit leaves less for all together, the runtime reports it.
 */
export function execLimits(pageBytes: number): ExecLimits {
  return { stringBytes: 32 * pageBytes, totalBytes }
}

/** A container's environment or command is larger than any process may have. */
export class ArgumentsTooLarge extends PoddError {
  constructor(message: string) {
    super('ARGUMENTS_TOO_LARGE', message, { hint: 'Give large values as files of a volume.' })
  }
}

/** Counts the size of a container's environment and command together. */
export class ExecSpace {
  readonly #limits: ExecLimits
  readonly #container: string
  #usedBytes = 0

  constructor(container: string, limits: ExecLimits) {
    this.#container = container
    this.#limits = limits
  }

  /**
   * Expands one string and takes room for it.
   * @param what names it in an error
   * @param prefix stands before it in the same string: `NAME=`
   * @throws ArgumentsTooLarge
   */
  expand(what: string, text: string, environment: Pick<Environment, 'get'>, prefix = ''): string {
    const freeBytes = this.#limits.stringBytes - Buffer.byteLength(prefix) - 1
    const expanded = expandReferences(text, environment, freeBytes)
    if (expanded === undefined) throw this.#stringTooLarge(what)
    this.take(what, expanded, prefix)
    return expanded
  }

  /** Takes room for a string as it stands. Throws ArgumentsTooLarge. */
  take(what: string, text: string, prefix = ''): void {
    const bytes = Buffer.byteLength(prefix) + Buffer.byteLength(text) + 1
    if (bytes > this.#limits.stringBytes) throw this.#stringTooLarge(what)
    this.#usedBytes += bytes + pointerBytes
    if (this.#usedBytes <= this.#limits.totalBytes) return
    throw new ArgumentsTooLarge(
      `environment and command of container ${this.#container} take more than ${this.#limits.totalBytes} bytes`,
    )
  }

  /** Releases the size of a replaced string. */
  release(text: string, prefix: string): void {
    this.#usedBytes -= Buffer.byteLength(prefix) + Buffer.byteLength(text) + 1 + pointerBytes
  }

  #stringTooLarge(what: string): ArgumentsTooLarge {
    const shown = what.length > longestNameShown ? `${what.slice(0, longestNameShown)}…` : what
    return new ArgumentsTooLarge(
      `${shown} of container ${this.#container} takes more than ${this.#limits.stringBytes} bytes`,
    )
  }
}

/** What a container runs, expanded. */
export interface ContainerCommand {
  readonly command: readonly string[]
  readonly args: readonly string[]
}

/**
 * A container's command and arguments, expanded with its environment (`pkg/kubelet/container/helpers.go`,
 * ExpandContainerCommandAndArgs, 1.36).
 * @throws ArgumentsTooLarge
 */
export function expandCommand(
  { name, command, args }: Pick<ContainerSpec, 'name' | 'command' | 'args'>,
  environment: Environment,
  limits: ExecLimits,
): ContainerCommand {
  const space = new ExecSpace(name, limits)
  for (const [variable, value] of environment) {
    space.take(`environment variable ${variable}`, value, `${variable}=`)
  }
  const expand =
    (list: 'command' | 'args') =>
    (word: string, index: number): string =>
      space.expand(`${list}[${index}]`, word, environment)
  return { command: command.map(expand('command')), args: args.map(expand('args')) }
}

/** The words of a probe's command, expanded; undefined where they are larger than any process may have. */
export function expandWords(
  words: readonly string[],
  environment: Environment,
): readonly string[] | undefined {
  const expanded: string[] = []
  let freeBytes = totalBytes
  for (const word of words) {
    const text = expandReferences(word, environment, freeBytes)
    if (text === undefined) return undefined
    freeBytes -= Buffer.byteLength(text)
    expanded.push(text)
  }
  return expanded
}
