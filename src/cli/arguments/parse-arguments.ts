import { PoddError } from '../../base/errors.ts'
import { nearestName } from '../../base/text.ts'

export interface FlagSpec {
  /** Without its dashes. */
  readonly name: string
  /** One letter. */
  readonly short?: string
  /** The placeholder of its value in the help; a flag without one is a switch. */
  readonly label?: string
  readonly doc: string
  /** It is taken, and `podd run --help` tells of it. */
  readonly isOfRun?: true
}

export class ParsedArguments {
  readonly positionals: readonly string[]
  /** In the order given; a switch without a value is empty. */
  readonly flags: readonly { readonly flag: string; readonly text: string }[]
  /** How many positionals precede `--`; undefined without it. */
  readonly dashesAt: number | undefined

  constructor(positionals: readonly string[], flags: ParsedArguments['flags'], dashesAt?: number) {
    this.positionals = positionals
    this.flags = flags
    this.dashesAt = dashesAt
  }

  has(name: string): boolean {
    const text = this.value(name)
    return text !== undefined && text !== 'false'
  }

  /** The last value given. */
  value(name: string): string | undefined {
    return this.flags.findLast(({ flag }) => flag === name)?.text
  }

  /** All values given, in their order. */
  values(name: string): readonly string[] {
    return this.flags.flatMap(({ flag, text }) => (flag === name ? [text] : []))
  }
  /** Throws UsageError where more words than `count` were given. */
  refuseMore(verb: string, count = 0, hint?: string): void {
    const extra = this.positionals[count]
    if (extra !== undefined) throw new UsageError(`${verb} takes no argument ${JSON.stringify(extra)}`, hint)
  }

  /** A whole number from `least` on; throws UsageError. */
  count(name: string, least = 0): number | undefined {
    const text = this.value(name)
    if (text === undefined) return undefined
    const count = /^-?\d{1,15}$/u.test(text) ? Number(text) : Number.NaN
    if (!(count >= least)) throw new UsageError(`--${name} must be a whole number, ${least} or more`)
    return count
  }
}

/**
 * Parses a verb's arguments: `--flag=value`, `--flag value`, `-f value`, `-fvalue`, switches alone, joined (`-it`) or
 * as `--switch=false` and `-f=false`; after `--` all is positional. Throws UsageError that names the nearest flag.
 */
export function parseArguments(argv: readonly string[], specs: readonly FlagSpec[]): ParsedArguments {
  const positionals: string[] = []
  const flags: { flag: string; text: string }[] = []
  const rest = [...argv]
  let dashesAt: number | undefined
  const takeValue = (written: string): string => {
    const value = rest.shift()
    if (value === undefined) throw new UsageError(`${written} needs a value`)
    return value
  }
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    if (word === '--') {
      dashesAt = positionals.length
      positionals.push(...rest.splice(0))
    } else if (word.startsWith('--')) {
      const equals = word.indexOf('=')
      const written = equals === -1 ? word : word.slice(0, equals)
      const spec = findFlag(written, specs)
      if (equals !== -1) flags.push({ flag: spec.name, text: checkSwitch(spec, word.slice(equals + 1)) })
      else flags.push({ flag: spec.name, text: spec.label === undefined ? '' : takeValue(written) })
    } else if (word.startsWith('-') && word !== '-') {
      for (let letters = word.slice(1); letters !== '';) {
        const written = `-${letters[0] ?? ''}`
        const spec = findFlag(written, specs)
        letters = letters.slice(1)
        if (spec.label === undefined) {
          const said = letters.startsWith('=') ? letters.slice(1) : undefined
          flags.push({ flag: spec.name, text: said === undefined ? '' : checkSwitch(spec, said) })
          if (said !== undefined) letters = ''
          continue
        }
        const joined = letters.startsWith('=') ? letters.slice(1) : letters
        flags.push({ flag: spec.name, text: letters === '' ? takeValue(written) : joined })
        letters = ''
      }
    } else positionals.push(word)
  }
  return new ParsedArguments(positionals, flags, dashesAt)
}

/** Where the second word stands that is neither a flag nor the value of one; undefined before `--`, or where there is none. */
export function secondWordAt(argv: readonly string[], specs: readonly FlagSpec[]): number | undefined {
  let words = 0
  for (let at = 0; at < argv.length; at += 1) {
    const word = argv[at] ?? ''
    if (word === '--') return undefined
    if (word.startsWith('-') && word !== '-') {
      if (takesNext(word, specs)) at += 1
      continue
    }
    words += 1
    if (words === 2) return at
  }
  return undefined
}

function takesNext(word: string, specs: readonly FlagSpec[]): boolean {
  if (word.startsWith('--'))
    return specs.some(({ name, label }) => label !== undefined && word === `--${name}`)
  const valued = specs.filter(({ short, label }) => short !== undefined && label !== undefined)
  const letters = Array.from(word.slice(1))
  // What follows it in the word is its value.
  return letters.findIndex((letter) => valued.some(({ short }) => short === letter)) === letters.length - 1
}

function findFlag(written: string, specs: readonly FlagSpec[]): FlagSpec {
  const isLong = written.startsWith('--')
  const name = written.replace(/^--?/u, '')
  const found = specs.find((spec) => (isLong ? spec.name === name : spec.short === name))
  if (found !== undefined) return found
  const known = specs.map((spec) => spec.name)
  const near = isLong ? nearestName(name, known) : known.find((candidate) => candidate === name)
  throw new UsageError(
    `unknown flag ${written}`,
    near === undefined ? 'With --help the verb lists its flags.' : `Did you mean --${near}?`,
  )
}

function checkSwitch(spec: FlagSpec, text: string): string {
  if (spec.label === undefined && text !== 'true' && text !== 'false')
    throw new UsageError(`--${spec.name} takes no value but true or false`)
  return text
}

/** The command line is wrong: exit code 2, and nothing was done. */
export class UsageError extends PoddError {
  constructor(message: string, hint?: string) {
    super('USAGE', message, { hint })
  }
}

/** A hint at the word that was meant; `otherwise` where none is near. */
export function nearestOr(word: string, known: readonly string[], otherwise: string): string {
  const near = nearestName(word, known)
  return near === undefined ? otherwise : `Did you mean ${near}?`
}
