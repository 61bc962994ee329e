/*
 * YAML as Kubernetes reads it: parsed, resolved by go-yaml's rules, made JSON; within bounds, and with faults in plain
 * words.
 */
import type * as yaml from 'yaml'
import type {
  Alias,
  CST,
  Document,
  DocumentOptions,
  Pair,
  ParseOptions,
  Scalar,
  SchemaOptions,
  YAMLError,
} from 'yaml'
import { isJsonObject, parseJson, sameData } from '../../base/json.ts'
import type { Json } from '../../base/json.ts'
import { addSpace } from './text-faults.ts'

const options: ParseOptions & DocumentOptions & SchemaOptions = {
  schema: 'failsafe',
  uniqueKeys: false,
  prettyErrors: false,
  logLevel: 'silent',
}

/**
 * A document, whose places may be those of a text with more space: `originalOffset` says which ones they are in the
 * given one.
 */
export interface ParsedYaml {
  readonly document: Document
  readonly originalOffset: (offset: number) => number
}

/**
 * One document of YAML, as Kubernetes reads it where the library is stricter or laxer (`scannerc.go`,
 * go.yaml.in/yaml/v2): `\'` in double quotes is an apostrophe, white space may be missing (see text-faults.ts), and an
 * escape names no half of a surrogate pair, but in JSON.
 *
 * @throws YamlValueError
 */
export function parseYaml(yaml: YamlLibrary, text: string): ParsedYaml {
  const document = parse(yaml, text)
  const asGiven = { document, originalOffset: (offset: number) => offset }
  const isGood = document.errors.length === 0
  if (isGood && !mayEndEarly.test(text)) return asGiven
  const spaced = addSpace(text)
  if (spaced === undefined) return asGiven
  const other = parse(yaml, spaced.text)
  if (isGood && other.errors.length > 0) return asGiven
  return { document: other, originalOffset: spaced.originalOffset }
}

/**
 * A line with this end may be the first of a quoted scalar that the library ends there: it takes the last quote for its
 * end.
 */
const mayEndEarly = /(?:''|\\")\r?$/m

function parse(yaml: YamlLibrary, text: string): Document {
  if (!specialEscape.test(text)) return yaml.parseDocument(text, options)
  // The steps of `parseDocument`; the scalars of a token keep its place, whatever their text becomes.
  const tokens = [...new yaml.Parser().parse(text)]
  const mayHaveHalves = text.trimStart().startsWith('{') && parseJson(text) !== undefined
  for (const token of tokens) readEscapes(token, mayHaveHalves)
  const [document] = new yaml.Composer(options).compose(tokens, true, text.length)
  return document ?? yaml.parseDocument(text, options)
}

/** `\'`, and what may be half of a surrogate pair. */
const specialEscape = /\\(?:'|u[dD]|U0000[dD])/

/** Without recursion: the nesting of the text is unbounded. */
function readEscapes(root: CST.Token, mayHaveHalves: boolean): void {
  const waiting: (CST.Token | null | undefined)[] = [root]
  while (waiting.length > 0) {
    const token = waiting.pop()
    if (token === null || token === undefined) continue
    if (token.type === 'double-quoted-scalar') {
      if (!mayHaveHalves) refuseHalves(token.source, token.offset)
      token.source = token.source.replaceAll(/\\./gsu, (escape) => (escape === "\\'" ? "'" : escape))
    } else if (token.type === 'document') waiting.push(token.value)
    else if ('items' in token) for (const { key, value } of token.items) waiting.push(key, value)
  }
}

const escapes = /\\(?:u([\dA-Fa-f]{4})|U([\dA-Fa-f]{8})|.)/gsu

function refuseHalves(source: string, offset: number): void {
  for (const { 1: short, 2: long, index } of source.matchAll(escapes)) {
    const code = Number.parseInt(short ?? long ?? '0', 16)
    if (code < 0xd800 || code > 0xdfff) continue
    const low = /^\\u([dD][c-fC-F][\dA-Fa-f]{2})/.exec(source.slice(index + (short === undefined ? 10 : 6)))
    const whole =
      low === null || code > 0xdbff
        ? undefined
        : String.fromCodePoint(
            0x10000 + ((code - 0xd800) << 10) + (Number.parseInt(low[1] ?? '', 16) - 0xdc00),
          )
    const written = whole?.codePointAt(0)?.toString(16).toUpperCase().padStart(8, '0')
    const advice = written === undefined ? '' : `: write \\U${written}, or the character itself`
    throw new YamlValueError(`an escape of half a character, which YAML has not${advice}`, offset + index)
  }
}

/** The YAML library, loaded when it is first needed (see read-documents.ts). */
export type YamlLibrary = typeof yaml

/** Deeper nesting than any manifest has; beyond it a document is refused. */
const maxDepth = 100
/** The most values that aliases may add to a document, so that a few lines can't expand to gigabytes. */
const maxAliasedValues = 100_000

/** A document that is YAML but can't become JSON; `offset` counts from the document's start. */
export class YamlValueError extends Error {
  readonly offset: number

  constructor(message: string, offset: number) {
    super(message)
    this.name = 'YamlValueError'
    this.offset = offset
  }
}

interface Anchored {
  readonly node: unknown
  readonly value: Json
  /** Values in it, itself included. */
  readonly count: number
}

type Entry = readonly [key: string, value: Json]

const coreTag = 'tag:yaml.org,2002:'
const scalarTags = new Set(['int', 'float', 'bool', 'null'].map((name) => `${coreTag}${name}`))
const binaryTag = `${coreTag}binary`
const knownTags = new Set([
  ...scalarTags,
  binaryTag,
  ...['str', 'map', 'seq', 'timestamp'].map((name) => `${coreTag}${name}`),
])

/** The JSON of a document. */
export interface YamlValue {
  readonly value: Json
  /** Keys that YAML reads as a boolean, or as a number that is written otherwise; and those that stand twice, as they are. */
  readonly changedKeys: readonly ChangedKey[]
  /** The node that an alias refers to. */
  readonly targetOf: (alias: Alias) => unknown
}

interface ChangedKey {
  readonly written: string
  readonly name: string
  readonly offset: number
}

/** The name that a key has in JSON, where it is a plain scalar. */
export function keyName(key: Scalar): string {
  const name = readScalar(key)
  return typeof name === 'number' || typeof name === 'boolean' ? String(name) : String(key.value)
}

/** Converts a document to JSON by Kubernetes' rules. Throws YamlValueError. */
export function yamlToJson(yaml: YamlLibrary, document: Document): YamlValue {
  const reader = new YamlReader(yaml)
  const value = reader.read(document.contents, 0)
  return { value, changedKeys: reader.changedKeys, targetOf: (alias) => reader.targets.get(alias) }
}

class YamlReader {
  readonly targets = new Map<Alias, unknown>()
  readonly changedKeys: ChangedKey[] = []
  readonly #yaml: YamlLibrary
  readonly #anchors = new Map<string, Anchored | 'open'>()
  #values = 0
  #aliasedValues = 0

  constructor(yaml: YamlLibrary) {
    this.#yaml = yaml
  }

  read(node: unknown, depth: number): Json {
    const { isNode, isAlias } = this.#yaml
    if (!isNode(node)) return null
    const offset = node.range?.[0] ?? 0
    if (depth > maxDepth) throw new YamlValueError(`nested deeper than ${maxDepth} levels`, offset)
    if (isAlias(node)) return this.#readAlias(node, offset)
    if (node.tag !== undefined && !knownTags.has(node.tag)) {
      throw new YamlValueError(unknownTag, offset)
    }
    const { anchor } = node
    const before = this.#values
    if (anchor !== undefined) this.#anchors.set(anchor, 'open')
    const value = this.#readContent(node, depth)
    this.#values += 1
    if (anchor !== undefined) this.#anchors.set(anchor, { node, value, count: this.#values - before })
    return value
  }

  #readContent(node: unknown, depth: number): Json {
    const { isMap, isSeq, isScalar } = this.#yaml
    if (isMap(node)) return this.#readMap(node.items, depth)
    if (isSeq(node)) return node.items.map((item) => this.read(item, depth + 1))
    return isScalar(node) ? readScalar(node) : null
  }

  #readAlias(alias: Alias, offset: number): Json {
    const anchored = this.#anchors.get(alias.source)
    if (anchored === undefined) {
      const message =
        'an alias whose anchor does not stand before it; a value that begins with `*` needs quotes'
      throw new YamlValueError(message, offset)
    }
    if (anchored === 'open') throw new YamlValueError('an alias that refers to what it stands in', offset)
    this.#values += anchored.count
    this.#aliasedValues += anchored.count
    if (this.#aliasedValues > maxAliasedValues) {
      throw new YamlValueError(`aliases add more than ${maxAliasedValues} values`, offset)
    }
    this.targets.set(alias, anchored.node)
    return anchored.value
  }

  #readMap(pairs: readonly Pair[], depth: number): Json {
    const own = new Map<string, Json>()
    const merged: Entry[] = []
    for (const pair of pairs) {
      const offset = this.#offsetOf(pair.key)
      if (isMergeKey(pair.key)) {
        for (const entry of mergeEntries(this.read(pair.value, depth + 1), offset)) merged.push(entry)
        continue
      }
      const key = this.#readKey(pair.key, depth, offset)
      const before = own.get(key)
      const value = this.read(pair.value, depth + 1)
      // kubectl takes the last one; the same value twice is a slip, which some charts make.
      if (before !== undefined && !sameData(before, value))
        throw new YamlValueError(`key ${JSON.stringify(key)} stands twice`, offset)
      if (before !== undefined) this.changedKeys.push({ written: key, name: key, offset })
      own.set(key, value)
    }
    // Own keys come before merged ones, and the first merged mapping before the next.
    return Object.fromEntries([...merged.reverse(), ...own])
  }

  #readKey(node: unknown, depth: number, offset: number): string {
    const key = this.read(node, depth + 1)
    if (typeof key === 'string') return key
    if (typeof key === 'number' || typeof key === 'boolean') {
      const name = String(key)
      const written = this.#yaml.isScalar(node) ? node.value : undefined
      if (typeof written === 'string' && written !== name) this.changedKeys.push({ written, name, offset })
      return name
    }
    // `{{ .Values.name }}` is a mapping with a mapping as its key.
    throw new YamlValueError(isJsonObject(key) ? unrenderedTemplate : 'a key must be a string', offset)
  }

  #offsetOf(node: unknown): number {
    return this.#yaml.isNode(node) ? (node.range?.[0] ?? 0) : 0
  }
}

function readScalar(node: Scalar): Json {
  const text = typeof node.value === 'string' ? node.value : ''
  if (node.tag === binaryTag) return readBinary(text, node.range?.[0] ?? 0)
  if (node.tag === undefined) {
    if (node.type !== 'PLAIN') return text
    if (unspeakable.test(text)) {
      const message = 'a number that JSON has no word for; put quotes around it'
      throw new YamlValueError(message, node.range?.[0] ?? 0)
    }
    return resolvePlain(text)
  }
  return scalarTags.has(node.tag) ? resolvePlain(text) : text
}

/** Base64 as go-yaml decodes it: padding is required. */
function readBinary(text: string, offset: number): string {
  const packed = text.replaceAll(/\s/g, '')
  if (packed.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(packed)) {
    throw new YamlValueError('!!binary takes base64', offset)
  }
  return Buffer.from(packed, 'base64').toString('utf8')
}

function isMergeKey(key: unknown): boolean {
  return typeof key === 'object' && key !== null && 'source' in key && key.source === '<<' && !isQuoted(key)
}

function isQuoted(key: object): boolean {
  return 'type' in key && key.type !== 'PLAIN'
}

/** The mappings merged by `<<`: one, or a list in which the first wins. */
function mergeEntries(value: Json, offset: number): readonly Entry[] {
  const maps = Array.isArray(value) ? value : [value]
  return maps.flatMap((map) => {
    if (!isJsonObject(map)) throw new YamlValueError('<< takes a mapping, or a list of mappings', offset)
    return Object.entries(map)
  })
}

export type Plain = null | boolean | number | string

const words = new Map<string, Plain>([
  ...['y', 'Y', 'yes', 'Yes', 'YES', 'true', 'True', 'TRUE', 'on', 'On', 'ON'].map(
    (word) => [word, true] as const,
  ),
  ...['n', 'N', 'no', 'No', 'NO', 'false', 'False', 'FALSE', 'off', 'Off', 'OFF'].map(
    (word) => [word, false] as const,
  ),
  ...['', '~', 'null', 'Null', 'NULL'].map((word) => [word, null] as const),
])

const floatPattern = /^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?$/
const integerPattern = /^([-+]?)(?:(0[xX])([\da-fA-F]+)|(0[bB])([01]+)|(0[oO]?)([0-7]+)|(0|[1-9]\d*))$/
/** `.nan` and `.inf`, which JSON can't represent. */
const unspeakable = /^[-+]?\.(?:inf|Inf|INF)$|^\.(?:nan|NaN|NAN)$/

/**
 * Resolves an unquoted YAML scalar. Kubernetes reads YAML 1.1 as go-yaml v2 does (through sigs.k8s.io/yaml), and so
 * does podd: `yes`, `on` and `y` are booleans, `0644` and `0o644` are octal, `1_000` is a thousand; `12:30` is a string
 * and so is a date. A number is a JavaScript number, as everything becomes JSON. Source: sigs.k8s.io/yaml,
 * goyaml.v2/resolve.go.
 */
export function resolvePlain(source: string): Plain {
  const word = words.get(source)
  if (word !== undefined) return word
  if (!/^[-+.\d]/.test(source) || unspeakable.test(source)) return source
  const plain = source.startsWith('.') ? source : source.replaceAll('_', '')
  const integer = integerPattern.exec(plain)
  if (integer !== null) return readInteger(integer)
  if (!floatPattern.test(plain)) return source
  const value = Number(plain)
  return Number.isFinite(value) ? value : source
}

function readInteger(match: RegExpExecArray): number {
  const [, sign, , hex, , binary, , octal, decimal] = match
  const magnitude =
    hex !== undefined
      ? Number.parseInt(hex, 16)
      : binary !== undefined
        ? Number.parseInt(binary, 2)
        : octal !== undefined
          ? Number.parseInt(octal, 8)
          : Number(decimal)
  return sign === '-' && magnitude !== 0 ? -magnitude : magnitude
}

/**
 * The most that one YAML document may have: as much as the API server takes for an object
 * (`staging/src/k8s.io/apiserver/pkg/server/config.go`, MaxRequestBodyBytes, 1.36).
 */
export const maxYamlBytes = 3 * 1024 * 1024

/** Keys and values of one YAML document: its tree takes about 1 KiB of memory for each. */
export const maxYamlScalars = 100_000

/** Each takes at least two bytes, including its separator. */
const leastBytesOfMany = 2 * maxYamlScalars

/** Why a document is too large to be read; undefined where it isn't. Holds one token in memory at a time. */
export function findOversize(yaml: YamlLibrary, text: string): string | undefined {
  const bytes = Buffer.byteLength(text)
  if (bytes > maxYamlBytes)
    return `the document has ${bytes} bytes, and a Kubernetes object has ${maxYamlBytes} at the most: put each object into a document of its own, with --- between them`
  if (bytes <= leastBytesOfMany) return undefined
  let scalars = 0
  for (const token of new yaml.Lexer().lex(text)) {
    if (isScalar(token)) scalars += 1
    if (scalars > maxYamlScalars)
      return `the document has more than ${maxYamlScalars} keys and values: put each object into a document of its own, with --- between them, or write it as JSON`
  }
  return undefined
}

/** The lexer's mark before a plain or block scalar, or a quoted one. */
function isScalar(token: string): boolean {
  return token === '\u001F' || token.startsWith('"') || token.startsWith("'")
}

/**
 * The message for invalid YAML, without quoting the text, which may be a Secret. The library's own message is used
 * where it quotes nothing.
 */
export function yamlMessage({ code, message }: Pick<YAMLError, 'code' | 'message'>): string {
  switch (code) {
    case 'RESOURCE_EXHAUSTION':
      return 'nested too deeply'
    case 'TAG_RESOLVE_FAILED':
    case 'BAD_COLLECTION_TYPE':
      return unknownTag
    case 'BAD_ALIAS':
      return 'a value that begins with `*` or `&` needs quotes'
    case 'BAD_SCALAR_START':
      return 'a value that begins with `@`, `%`, `,`, `|`, `>`, a backtick or a tab needs quotes here'
    case 'BAD_DQ_ESCAPE':
      return 'in double quotes a backslash begins an escape sequence, and this one is none: write `\\\\` for a backslash'
    case 'BAD_DIRECTIVE':
      return 'a line that begins with `%` is a directive, and this one is none that YAML knows'
    case 'UNEXPECTED_TOKEN':
      if (message.startsWith('Block scalar header')) {
        return 'a value that begins with `|` or `>` needs quotes, unless it is a block of lines'
      }
      if (/^Unexpected (?:\S+ at node end|\S*scalar token)/.test(message)) {
        return 'text behind a value that is complete: put quotes around the whole value'
      }
      if (message.startsWith('Unexpected block-seq-ind')) {
        return 'a list begins on a line of its own, below its field: a value that begins with `- ` needs quotes'
      }
      if (/^Unexpected (?:,|empty item)/.test(message)) return 'a `,` too many in brackets'
      if (/^Unexpected (?:flow-\w+-end|[\]}])/.test(message)) return 'a bracket closes here that none opened'
      return 'text that cannot stand here: a value that it belongs to needs quotes'
    case 'MULTIPLE_ANCHORS':
      return 'two anchors (`&`) of one value'
    case 'MULTIPLE_TAGS':
      return 'two tags (`!`) of one value'
    case 'TAB_AS_INDENT':
      return 'a tab at the beginning of a line: YAML takes only spaces there'
    case 'BAD_INDENT':
      return /[\]}]$/.test(message)
        ? openBracket
        : 'begins at another column than the fields or items above it that it belongs to'
    case 'MISSING_CHAR':
      if (/[\]}]$/.test(message)) return openBracket
      if (message.startsWith('Implicit map keys')) {
        return 'a `:` is missing behind the name of a field, or the line is not indented as what it belongs to'
      }
      if (message.startsWith('Sequence item without')) {
        return 'an item of a list without its `-`, or the line is not indented as the item that it belongs to'
      }
      return message.endsWith('quote')
        ? 'a quote that is opened here or above is not closed'
        : 'a `,` is missing in brackets, or text stands behind a value that is complete'
    case 'BLOCK_AS_IMPLICIT_KEY':
    case 'MULTILINE_IMPLICIT_KEY':
      return 'a `:` too many, or none on the line above: a value that has `: ` in it needs quotes, and a nested field a line of its own'
    case 'BLOCK_IN_FLOW':
      return 'lines of fields or items within brackets: close the bracket first'
    default:
      return message
  }
}

const openBracket = 'a bracket that is opened here or above is not closed, or stands too far to the left'

/** The braces of an unrendered chart or playbook. */
const unrenderedTemplate =
  'a template that was not rendered (`{{ … }}`): podd reads YAML, such as `helm template` writes'

/**
 * What a text is instead of YAML, where the line at `offset`, at which the parser gave up, or the one above shows it.
 * The parser's own message would lead elsewhere.
 */
export function explainLine(
  yaml: YamlLibrary,
  text: string,
  offset: number,
  parsed: ParsedYaml,
): string | undefined {
  const start = text.lastIndexOf('\n', offset - 1) + 1
  const end = text.indexOf('\n', offset)
  const line = text.slice(start, end < 0 ? text.length : end)
  const startAbove = text.lastIndexOf('\n', start - 2) + 1
  const above = text.slice(startAbove, start)
  const either = (pattern: RegExp): RegExpExecArray | null => pattern.exec(line) ?? pattern.exec(above)
  if (/\{\{|\{%/.test(line)) return unrenderedTemplate
  if (either(/^(?:<{7}|={7}|>{7})(?=\s|$)/))
    return 'the mark of a conflict that git could not resolve (`<<<<<<<`): choose one of the two versions, and remove the marks'
  // The lines of a value may begin with anything.
  const outside = (pattern: RegExp): RegExpExecArray | undefined =>
    [
      { match: pattern.exec(line), at: start },
      { match: pattern.exec(above), at: startAbove },
    ].flatMap(({ match, at }) => (match === null || isWithinText(yaml, parsed, at) ? [] : [match]))[0]
  if (outside(/^\s*(?:\/\/|\/\*)/)) return 'comments begin with `#` here, not with `//` or `/*`, in JSON too'
  const [, blank] = outside(/^[ \t]*([\u00A0\u2000-\u200B\u202F\u3000\uFEFF])/) ?? []
  if (blank === undefined) return undefined
  const code = (blank.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')
  return `U+${code} at the beginning of a line, which looks like a space: YAML takes only spaces there`
}

/** Whether a line that begins at `offset` belongs to a block of lines or a text in quotes that began above it. */
function isWithinText(yaml: YamlLibrary, { document, originalOffset }: ParsedYaml, offset: number): boolean {
  let isWithin = false
  yaml.visit(document, {
    Scalar(_key, { type, range }) {
      if (type === 'PLAIN' || !range) return undefined
      const [begin, end] = range
      if (originalOffset(begin) >= offset || originalOffset(end) <= offset) return undefined
      isWithin = true
      return yaml.visit.BREAK
    },
  })
  return isWithin
}

const unknownTag = 'podd does not know this tag; a value that begins with `!` needs quotes'
