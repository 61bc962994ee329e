/* A text taken apart into YAML and JSON documents, with the places of their fields. */
import type { Alias, Document } from 'yaml'
import type { Json } from '../../base/json.ts'
import type { FieldPath } from '../schema/issues.ts'
import { countUpTo, findTextFault, splitJson } from './text-faults.ts'
import type { Slice } from './text-faults.ts'
import {
  explainLine,
  findOversize,
  keyName,
  parseYaml,
  yamlMessage,
  yamlToJson,
  YamlValueError,
} from './yaml.ts'
import type { YamlLibrary } from './yaml.ts'

/** Counted from 1. */
export interface Position {
  readonly line: number
  readonly column: number
}

/** One document of a text, as JSON, or why it can't be read. Empty documents are left out. */
export type RawDocument =
  | {
      readonly kind: 'read'
      readonly value: Json
      /** Keys that YAML reads as a boolean, or as a number that is written otherwise; and those that stand twice, as they are. */
      readonly changedKeys: readonly {
        readonly written: string
        /** As it stands in `value`. */
        readonly name: string
        readonly position: Position
      }[]
      /** The position of the field at `path`; of the nearest ancestor where it doesn't exist. */
      readonly locate: (path: FieldPath) => Position | undefined
      /** The scalar at `path` as written; undefined where there is none, or its text is unknown. */
      readonly textOf: (path: FieldPath) => string | undefined
    }
  | { readonly kind: 'broken'; readonly message: string; readonly position: Position }

/**
 * Reads a JSON text without duplicate keys; undefined where it has to be read as YAML. It is many times faster than the
 * YAML library but can't locate fields.
 */
export function readJsonDocument(text: string): RawDocument | undefined {
  if (!/^\s*\{/.test(text)) return undefined
  try {
    const value: Json = JSON.parse(text)
    if (findDuplicateFields(text).length > 0) return undefined
    return { kind: 'read', value, changedKeys: [], locate: () => undefined, textOf: () => undefined }
  } catch {
    // Not JSON, or nested too deeply for the stack; the YAML reader reports which, and where.
    return undefined
  }
}

/** More of them say nothing more. */
const maxFound = 20

type Level = { readonly keys: Set<string>; key: string } | { index: number }

/** One that does not end is none in JSON, and costs no more than others. */
const token = /"(?:[^"\\]|\\.)*"?|[{}[\],]/gsu

/**
 * The fields that stand twice in an object of a JSON text, as `data.a` or `spec.containers[0].image`: of these a parser
 * takes the last one. The text must be well-formed.
 */
export function findDuplicateFields(text: string): readonly string[] {
  const levels: Level[] = []
  const found = new Set<string>()
  let isKey = false
  for (const [piece] of text.matchAll(token)) {
    const level = levels.at(-1)
    if (piece === '{') {
      levels.push({ keys: new Set(), key: '' })
      isKey = true
    } else if (piece === '[') levels.push({ index: 0 })
    else if (piece === '}' || piece === ']') {
      levels.pop()
      isKey = false
    } else if (piece === ',') {
      if (level !== undefined && 'index' in level) level.index += 1
      isKey = level !== undefined && 'keys' in level
    } else if (isKey && level !== undefined && 'keys' in level) {
      const key: unknown = JSON.parse(piece)
      level.key = String(key)
      if (level.keys.has(level.key)) found.add(pathOf(levels))
      level.keys.add(level.key)
      isKey = false
      if (found.size >= maxFound) break
    }
  }
  return [...found]
}

function pathOf(levels: readonly Level[]): string {
  return levels
    .map((level) => ('index' in level ? `[${level.index}]` : `.${level.key}`))
    .join('')
    .slice(1)
}

/**
 * Splits a text at its `---` lines and reads each document on its own, so that a broken one doesn't affect others. Each
 * is read on demand, so that only one tree is in memory at a time.
 */
export async function readYamlDocuments(text: string): Promise<Iterable<RawDocument>> {
  return readEach(await import('yaml'), text)
}

function* readEach(yaml: YamlLibrary, text: string): Generator<RawDocument> {
  // A bare carriage return ends a line; offsets stay.
  const ofLines = text.replaceAll(/\r(?!\n)/g, '\n')
  const lines = new LineIndex(ofLines)
  for (const { start, end } of splitDocuments(ofLines).flatMap((slice) => splitJson(ofLines, slice))) {
    const read = readOne(yaml, ofLines.slice(start, end), (offset) => lines.positionOf(start + offset))
    if (read !== undefined) yield read
  }
}

function readOne(
  yaml: YamlLibrary,
  text: string,
  positionOf: (offset: number) => Position,
): RawDocument | undefined {
  let toOriginal = (offset: number): number => offset
  const oversize = findOversize(yaml, text)
  if (oversize !== undefined) return { kind: 'broken', message: oversize, position: positionOf(0) }
  try {
    const fault = findTextFault(text)
    if (fault !== undefined) {
      return { kind: 'broken', message: fault.message, position: positionOf(fault.offset) }
    }
    const parsed = parseYaml(yaml, text)
    const { document, originalOffset } = parsed
    toOriginal = originalOffset
    const [error] = document.errors
    if (error !== undefined) {
      const offset = originalOffset(error.pos[0])
      const message = explainLine(yaml, text, offset, parsed) ?? yamlMessage(error)
      return { kind: 'broken', message, position: positionOf(offset) }
    }
    const { value, targetOf, changedKeys } = yamlToJson(yaml, document)
    if (value === null) return undefined
    const locator = new FieldLocator(yaml, document, targetOf)
    return {
      kind: 'read',
      value,
      changedKeys: changedKeys.map(({ written, name, offset }) => ({
        written,
        name,
        position: positionOf(originalOffset(offset)),
      })),
      locate: (path) => positionOf(originalOffset(locator.find(path).offset)),
      textOf: (path) => textOf(yaml, locator.find(path).node),
    }
  } catch (error) {
    if (error instanceof YamlValueError) {
      return { kind: 'broken', message: error.message, position: positionOf(toOriginal(error.offset)) }
    }
    // The parser recurses, so deeply nested text exhausts the stack.
    if (error instanceof RangeError) {
      return { kind: 'broken', message: 'nested too deeply', position: positionOf(0) }
    }
    // A defect of the library, whose message may quote the text.
    const what = error instanceof Error ? error.name : typeof error
    return { kind: 'broken', message: `the YAML reader failed (${what})`, position: positionOf(0) }
  }
}

function textOf(yaml: YamlLibrary, node: unknown): string | undefined {
  return yaml.isScalar(node) && typeof node.value === 'string' ? node.value : undefined
}

/** At column 0 `---` and `...` always end a document, in any context. */
function splitDocuments(text: string): readonly Slice[] {
  const slices: Slice[] = []
  let start = 0
  for (const marker of text.matchAll(/^(?:---(?=\s|$)|\.\.\.(?=\s|$)).*$/gm)) {
    slices.push({ start, end: marker.index })
    const isStart = marker[0].startsWith('---')
    // The rest of a `---` line belongs to the document.
    start = marker.index + (isStart ? 3 : marker[0].length)
  }
  slices.push({ start, end: text.length })
  return slices.filter(({ start, end }) => {
    const part = text.slice(start, end)
    return hasContent(part) || findTextFault(part) !== undefined
  })
}

/** False for a text of only blanks, comments and directives. Linear. */
function hasContent(text: string): boolean {
  let isLineStart = true
  for (const character of text) {
    if (lineEnds.has(character)) isLineStart = true
    else if (!isLineStart || /\s/.test(character)) continue
    else if (character === '#' || character === '%') isLineStart = false
    else return true
  }
  return false
}

/** Those of JavaScript's regular expressions. */
const lineEnds: ReadonlySet<string> = new Set(['\n', '\r', '\u2028', '\u2029'])

/** Offsets to lines and columns; a tab is one column. */
class LineIndex {
  readonly #starts: number[] = [0]

  constructor(text: string) {
    for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) this.#starts.push(at + 1)
  }

  positionOf(offset: number): Position {
    const line = countUpTo(this.#starts, offset, (start) => start)
    return { line, column: offset - (this.#starts[line - 1] ?? 0) + 1 }
  }
}

/** The position of a field in the text of a document. */
export interface Found {
  /** The position of the field's key where it exists, else of the deepest field on its path. */
  readonly offset: number
  /** The position of its value; undefined without such a field. */
  readonly node: unknown
}

interface Entry {
  readonly mark: unknown
  readonly value: unknown
}

/**
 * Finds fields of a document by their paths. Each mapping is indexed once, when a field of it is first looked for, so
 * that finding many fields of a large one is fast.
 */
class FieldLocator {
  readonly #yaml: YamlLibrary
  readonly #document: Document
  readonly #targetOf: (alias: Alias) => unknown
  readonly #entries = new Map<unknown, ReadonlyMap<unknown, Entry>>()

  /** @param targetOf resolves an alias; the library would walk through the document each time */
  constructor(yaml: YamlLibrary, document: Document, targetOf: (alias: Alias) => unknown) {
    this.#yaml = yaml
    this.#document = document
    this.#targetOf = targetOf
  }

  find(path: FieldPath): Found {
    let node: unknown = this.#document.contents
    let offset = this.#startOf(node) ?? 0
    for (const step of path) {
      const found = this.#descend(this.#behind(node), step)
      if (found === undefined) return { offset, node: undefined }
      offset = this.#startOf(found.mark) ?? offset
      node = found.value
    }
    return { offset, node: this.#behind(node) }
  }

  #descend(node: unknown, step: string | number): Entry | undefined {
    if (this.#yaml.isSeq(node)) {
      const item = typeof step === 'number' ? node.items[step] : undefined
      return item === undefined ? undefined : { mark: item, value: item }
    }
    return this.#entriesOf(node).get(step)
  }

  /** The fields of a mapping with those merged into it; own fields come before merged ones. */
  #entriesOf(node: unknown): ReadonlyMap<unknown, Entry> {
    const known = this.#entries.get(node)
    if (known !== undefined) return known
    const entries = new Map<unknown, Entry>()
    this.#entries.set(node, entries)
    if (!this.#yaml.isMap(node)) return entries
    const merged: unknown[] = []
    for (const { key, value } of node.items) {
      if (!this.#yaml.isScalar(key)) continue
      if (key.value === '<<') merged.push(this.#behind(value))
      const name = keyName(key)
      if (!entries.has(name)) entries.set(name, { mark: key, value })
    }
    for (const source of new Set(merged)) {
      for (const [name, entry] of this.#entriesOf(source)) if (!entries.has(name)) entries.set(name, entry)
    }
    return entries
  }

  #behind(node: unknown): unknown {
    return this.#yaml.isAlias(node) ? this.#targetOf(node) : node
  }

  #startOf(node: unknown): number | undefined {
    return this.#yaml.isNode(node) ? node.range?.[0] : undefined
  }
}

/** The text of a source, without its byte order mark; undefined for bytes that are no text. */
export function toText(input: string | Uint8Array): string | undefined {
  try {
    const text = typeof input === 'string' ? input : new TextDecoder('utf-8', { fatal: true }).decode(input)
    if (text.includes('\0')) return undefined
    return text.startsWith('\uFEFF') ? text.slice(1) : text
  } catch {
    // It is not UTF-8.
    return undefined
  }
}

/** Why bytes are no readable text, with the position of the first invalid one. */
export function describeBytes(input: string | Uint8Array): readonly [message: string, position?: Position] {
  const bytes = Buffer.from(input)
  const isUtf16 = (bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff)
  if (isUtf16) return ['not a text in UTF-8 but in UTF-16: save it as UTF-8', { line: 1, column: 1 }]
  if (bytes[0] === 0x1f && bytes[1] === 0x8b)
    return ['packed with gzip, and no text: unpack it', { line: 1, column: 1 }]
  const text = bytes.toString('utf8')
  const nul = text.indexOf('\0')
  const other = text.indexOf('\uFFFD')
  const isNul = nul >= 0 && (other < 0 || nul < other)
  const at = isNul ? nul : other
  if (at < 0) return ['not a text in UTF-8']
  const lineStart = text.lastIndexOf('\n', at - 1) + 1
  const line = text.slice(0, lineStart).split('\n').length
  const position = { line, column: at - lineStart + 1 }
  return [isNul ? 'not a text: there is a NUL byte in it' : 'not a text in UTF-8', position]
}

/** Whether a text ends within a line, which suggests truncation. JSON may have no line end after its last bracket. */
export function endsInsideLine(text: string): boolean {
  const content = text.trimEnd()
  return !text.slice(content.length).includes('\n') && !content.endsWith('}') && !content.endsWith(']')
}
