import { isIP } from 'node:net'
import { PoddError } from '../base/errors.ts'
import { isHeaderValue } from '../base/http.ts'
import { isJsonObject } from '../base/json.ts'
import type { Json } from '../base/json.ts'

/** A parsed value, or what is wrong with it (a clause: `must be …`). */
export type Decoded<T> =
  | {
      readonly kind: 'ok'
      readonly value: T
      /** Parts without effect, each a clause: `pid has no effect: …`. */
      readonly warnings?: readonly string[]
    }
  | { readonly kind: 'bad'; readonly message: string }

/** How values of an option are written, in a flag and in the file. */
export interface OptionType<T> {
  /** The placeholder of a value in `--help` and docs/OPTIONS.md. */
  readonly label: string
  /** Its values can't hold a secret. */
  readonly isOpen?: boolean
  /** A flag without a value means true. */
  readonly isSwitch?: boolean
  /** The only words allowed, if there is such a list. */
  readonly words?: readonly string[]
  fromText(text: string): Decoded<T>
  fromFile(json: Json): Decoded<T>
  /** How the value is shown; undefined is shown as nothing at all. */
  format(value: T): string
  /** Merges repeated flags. By default the later one wins. */
  merge?(earlier: T, later: T): T
}

export function ok<T>(value: T): Decoded<T> {
  return { kind: 'ok', value }
}

export function bad(message: string): Extract<Decoded<never>, { kind: 'bad' }> {
  return { kind: 'bad', message }
}

/** `fromText` of what has no form in a flag. */
export const onlyInFile = (): Decoded<never> => bad('has to stand in the config file')

/** A type that is written as text in the file too. */
export function textual<T>(
  label: string,
  fromText: (text: string) => Decoded<T>,
  format: (value: T) => string,
): OptionType<T> {
  const fromFile = (json: Json): Decoded<T> =>
    typeof json === 'string' ? fromText(json) : bad(`must be text, not ${describe(json)}`)
  return { label, fromText, fromFile, format }
}

/** The names and values of `NAME=VALUE,…`; a name that stands alone has none. */
export function splitPairs(
  text: string,
  separator: string,
): readonly (readonly [name: string, value: string | undefined])[] {
  const pairs = text.split(',').filter((pair) => pair !== '')
  return pairs.map((pair) => {
    const at = pair.indexOf(separator)
    return at < 0 ? [pair, undefined] : [pair.slice(0, at), pair.slice(at + 1)]
  })
}

function describe(json: Json): string {
  if (json === null) return 'null'
  if (Array.isArray(json)) return 'a list'
  if (typeof json === 'object') return 'a mapping'
  return `${typeof json} ${JSON.stringify(json)}`
}

/** An absolute path; an empty one disables what the path is for. */
export const optionalPath: OptionType<string | undefined> = textual(
  'PATH',
  (value) => {
    if (value === '') return ok(undefined)
    return value.startsWith('/') ? ok(cleanPath(value)) : bad('must be an absolute path')
  },
  (value) => value ?? '',
)

export const path: OptionType<string> = textual(
  'PATH',
  (value) => (value.startsWith('/') ? ok(cleanPath(value)) : bad('must be an absolute path')),
  (value) => value,
)

function cleanPath(value: string): string {
  const cleaned = value.replaceAll(/\/+/gu, '/')
  return cleaned.length > 1 && cleaned.endsWith('/') ? cleaned.slice(0, -1) : cleaned
}

/** Text, in which an empty one means unset. */
export function optionalText(
  label: string,
  check: (value: string) => string | undefined,
): OptionType<string | undefined> {
  return textual<string | undefined>(
    label,
    (value) => {
      if (value === '') return ok(undefined)
      const wrong = check(value)
      return wrong === undefined ? ok(value) : bad(wrong)
    },
    (value) => value ?? '',
  )
}

export const optionalUrl: OptionType<string | undefined> = optionalText('URL', (value) => {
  const protocol = URL.canParse(value) ? new URL(value).protocol : ''
  return protocol === 'http:' || protocol === 'https:' ? undefined : 'must be an http:// or https:// URL'
})

/** `unix:///path`, or a plain absolute path, which means the same. */
export function endpoint(...words: readonly string[]): OptionType<string> {
  const wanted = [...words, 'unix:///PATH'].join(' or ')
  const type = textual<string>(
    'ENDPOINT',
    (value) => {
      if (words.includes(value)) return ok(value)
      if (value.startsWith('/')) return ok(`unix://${value}`)
      return /^unix:\/\/\/./u.test(value) ? ok(value) : bad(`must be ${wanted}`)
    },
    (value) => value,
  )
  return { ...type, words: [...words] }
}

/** One address, or one of each family separated by a comma. */
export const addresses: OptionType<readonly string[]> = textual(
  'IP[,IP]',
  (value) => {
    const list = value.split(',').filter((item) => item !== '')
    if (list.some((item) => isIP(item) === 0))
      return bad('must be an IP address, or two of different families')
    if (list.length > 2 || (list.length === 2 && isIP(list[0] ?? '') === isIP(list[1] ?? '')))
      return bad('must be one address, or two of different families')
    return ok(list)
  },
  (value) => value.join(','),
)

/** One network in CIDR notation, or one of each family separated by a comma; empty lets podd choose. */
export const networks: OptionType<readonly string[]> = textual(
  'CIDR[,CIDR]',
  (value) => {
    const list = value.split(',').filter((item) => item !== '')
    const families = new Set(list.map((item) => isIP(item.split('/')[0] ?? '')))
    if (families.size < list.length || !list.every((item) => isNetwork(item)))
      return bad('must be a network such as 10.88.0.0/16, or two of different families')
    return ok(list)
  },
  (value) => value.join(','),
)

function isNetwork(item: string): boolean {
  const [address = '', bits = '', ...rest] = item.split('/')
  const family = isIP(address)
  if (family === 0 || rest.length > 0 || !/^\d{1,3}$/u.test(bits)) return false
  return Number(bits) <= (family === 4 ? 32 : 128)
}

export function word<const Words extends readonly string[]>(...words: Words): OptionType<Words[number]> {
  const isWord = (value: string): value is Words[number] => words.includes(value)
  const type = textual<Words[number]>(
    words.join('|'),
    (value) => (isWord(value) ? ok(value) : bad(`must be one of ${words.join(', ')}`)),
    (value) => value,
  )
  return { ...type, isOpen: true, words }
}

export const flag: OptionType<boolean> = {
  label: 'true|false',
  isOpen: true,
  isSwitch: true,
  fromText(value) {
    if (value === 'true' || value === '') return ok(true)
    return value === 'false' ? ok(false) : bad('must be true or false')
  },
  fromFile: (json) =>
    typeof json === 'boolean' ? ok(json) : bad(`must be true or false, not ${describe(json)}`),
  format: String,
}

/** A whole number from `min` to `max`, both included. */
export function integer(min: number, max: number): OptionType<number> {
  const check = (value: number): Decoded<number> => {
    if (!Number.isInteger(value)) return bad('must be a whole number')
    return value >= min && value <= max ? ok(value) : bad(`must be from ${min} to ${max}`)
  }
  return {
    label: 'NUMBER',
    isOpen: true,
    fromText: (value) => (/^-?\d+$/u.test(value) ? check(Number(value)) : bad('must be a whole number')),
    fromFile: (json) =>
      typeof json === 'number' ? check(json) : bad(`must be a whole number, not ${describe(json)}`),
    format: String,
  }
}

/** Milliseconds from `minMs` to `maxMs`, written as Go writes durations. */
export function duration(minMs: number, maxMs: number = Number.POSITIVE_INFINITY): OptionType<number> {
  const type = textual<number>(
    'DURATION',
    (value) => {
      let valueMs: number
      try {
        valueMs = parseDuration(value)
      } catch {
        // parseDuration throws for malformed text alone.
        return bad('must be a duration such as 500ms, 20s or 1m30s')
      }
      if (valueMs >= minMs && valueMs <= maxMs) return ok(valueMs)
      return bad(
        maxMs === Number.POSITIVE_INFINITY
          ? `must be at least ${spellDuration(minMs)}`
          : `must be from ${spellDuration(minMs)} to ${spellDuration(maxMs)}`,
      )
    },
    spellDuration,
  )
  return { ...type, isOpen: true }
}

/** An optional type: undefined means unset. */
export function optional<T>(type: OptionType<T>): OptionType<T | undefined> {
  const { label, isSwitch = false, words } = type
  return {
    label,
    isSwitch,
    ...(words && { words }),
    fromText: (text) => type.fromText(text),
    fromFile: (json) => type.fromFile(json),
    format: (value) => (value === undefined ? '' : type.format(value)),
  }
}

export type Headers = Readonly<Record<string, readonly string[]>>

/** HTTP headers: `NAME:VALUE[,NAME:VALUE]` in a flag, a mapping of lists in the file, as the kubelet takes them. */
export const headers: OptionType<Headers> = {
  label: 'NAME:VALUE[,...]',
  fromText(value) {
    const result = new Map<string, readonly string[]>()
    for (const pair of value.split(',')) {
      const colon = pair.indexOf(':')
      if (colon < 1) return bad('must be NAME:VALUE pairs separated by commas')
      const name = pair.slice(0, colon).trim()
      result.set(name, [...(result.get(name) ?? []), pair.slice(colon + 1).trim()])
    }
    return checkHeaders(Object.fromEntries(result))
  },
  fromFile(json) {
    if (!isJsonObject(json)) return bad(`must be a mapping of lists, not ${describe(json)}`)
    const result = new Map<string, readonly string[]>()
    for (const [name, list] of Object.entries(json)) {
      if (!isTextList(list)) return bad(`${name} must be a list of texts`)
      result.set(name, list)
    }
    return checkHeaders(Object.fromEntries(result))
  },
  /** Values may be credentials: they are never shown. */
  format: (value) => Object.keys(value).join(', '),
  merge(earlier, later) {
    const result = new Map(Object.entries(earlier))
    for (const [name, list] of Object.entries(later)) result.set(name, [...(result.get(name) ?? []), ...list])
    return Object.fromEntries(result)
  },
}

function isTextList(json: Json | undefined): json is readonly string[] {
  return Array.isArray(json) && json.every((item) => typeof item === 'string')
}

function checkHeaders(value: Headers): Decoded<Headers> {
  for (const [name, list] of Object.entries(value)) {
    if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/u.test(name))
      return bad(`${JSON.stringify(name)} is not a header name`)
    if (list.some((item) => /[\r\n\0]/u.test(item))) return bad(`${name} has a line break in its value`)
    if (!list.every((item) => isHeaderValue(item)))
      return bad(`${name} has a character in its value that no header can carry`)
  }
  return ok(value)
}

/** One setting: the single place for its names, type, default and words about it. */
export interface Option<T> {
  /** The name in the file; dots lead into mappings. */
  readonly field: string
  /** The flag of `podd run`, without its dashes; undefined for a setting of the file alone. */
  readonly flag?: string
  readonly type: OptionType<T>
  readonly default: NoInfer<T>
  /** A description of the default where `default` can't show it. */
  readonly defaultText?: string
  /** The origin of the field name: a `kubelet` field may stand in a KubeletConfiguration too. */
  readonly owner: 'kubelet' | 'podd'
  /**
   * Whether a value may be a secret, or hold one: `false` for one that everybody may see who may see anything of podd;
   * otherwise what may be shown of it. Left out, it is a secret as a whole, unless its type `isOpen`.
   */
  readonly secret?: false | Shown<NoInfer<T>>
  /**
   * A Go zero value (`0s`, `""`, `0`) in a KubeletConfiguration means unset, as the kubelet's optional fields are no
   * pointers (pkg/kubelet/apis/config/v1beta1/defaults.go, 1.36).
   */
  readonly zeroIsDefault?: boolean
  /** One or two sentences; the type implies the unit. */
  readonly doc: string
}

/** As a method, so that an option of any type is one of `unknown`. */
type Shown<T> = { shown(value: T): Json }['shown']

/** What is shown of a value that may be secret. */
export const redacted = '<redacted>'

/** The names of a mapping, each with a list as the kubelet has the values of headers. */
export function withoutValues(mapping: Readonly<Record<string, unknown>>): Json {
  return Object.fromEntries(
    Object.entries(mapping).map(([name, value]) => [name, Array.isArray(value) ? [redacted] : redacted]),
  )
}

type Described<T> = Omit<Option<T>, 'field' | 'type' | 'default' | 'owner'>

/** A setting of podd's own. */
export function poddOption<T>(
  field: string,
  byDefault: NoInfer<T>,
  type: OptionType<T>,
  described: Described<T>,
): Option<T> {
  return {
    field,
    type,
    default: byDefault,
    owner: 'podd',
    ...(type.isOpen && { secret: false }),
    ...described,
  }
}

/** A setting that the kubelet has too. */
export function kubeletOption<T>(
  ...[field, byDefault, type, described]: Parameters<typeof poddOption<T>>
): Option<T> {
  return { ...poddOption(field, byDefault, type, described), owner: 'kubelet' }
}

/** What is wrong with settings together, each with its field. */
export type OptionProblems = readonly { readonly field: string; readonly message: string }[]

/** Those of the problems that are there. */
export function problemsWhere(
  ...checks: readonly (readonly [isWrong: boolean, field: string, message: string])[]
): OptionProblems {
  return checks.flatMap(([isWrong, field, message]) => (isWrong ? { field, message } : []))
}

const unitMs: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
}

/**
 * Milliseconds of a duration written as Go writes it (`300ms`, `1m30s`, `1.5h`, `0`; time.ParseDuration).
 * Throws PoddError BAD_DURATION.
 */
export function parseDuration(text: string): number {
  const match = /^([+-]?)((?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+$/u.exec(text)
  if (text === '0') return 0
  if (match === null) {
    throw new PoddError('BAD_DURATION', `${JSON.stringify(text)} is not a duration`, {
      hint: 'Write a number with its unit, such as 500ms, 20s, 1m30s or 2h.',
    })
  }
  let totalMs = 0
  const [, sign = ''] = match
  for (const part of text.slice(sign.length).matchAll(/(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)/guy)) {
    totalMs += Number(part[1]) * (unitMs[part[2] ?? ''] ?? Number.NaN)
  }
  return sign === '-' ? -totalMs : totalMs
}

/** The shortest Go spelling of whole milliseconds: `1m30s`, `20s`, `250ms`, `0s`. */
export function spellDuration(durationMs: number): string {
  if (durationMs === 0) return '0s'
  const parts: string[] = []
  let restMs = Math.abs(Math.round(durationMs))
  for (const unit of ['h', 'm', 's', 'ms']) {
    const ms = unitMs[unit] ?? 1
    const count = Math.floor(restMs / ms)
    restMs -= count * ms
    if (count > 0) parts.push(`${count}${unit}`)
  }
  return `${durationMs < 0 ? '-' : ''}${parts.join('')}`
}
