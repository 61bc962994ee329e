import type { Json } from '../../base/json.ts'
import { isJsonObject } from '../../base/json.ts'
import { FieldLocator } from './field-locator.ts'
import type { FieldPath } from '../schema/field-path.ts'
import { findTextFault, splitJson } from './text-faults.ts'
import { isTemplate, unrenderedTemplate, yamlMessage } from './yaml-message.ts'
import { parseYaml } from './parse-yaml.ts'
import type { Slice } from './text-faults.ts'
import { findOversize } from './yaml-bounds.ts'
import type { YamlLibrary } from './yaml-value.ts'
import { YamlValueError, yamlToJson } from './yaml-value.ts'

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
      /** Keys that YAML reads as a boolean, or as a number that is written otherwise; none of JSON. */
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
    if (countKeys(value) !== countKeyTokens(text)) return undefined
    return { kind: 'read', value, changedKeys: [], locate: () => undefined, textOf: () => undefined }
  } catch {
    // Not JSON, or nested too deeply for the stack; the YAML reader reports which, and where.
    return undefined
  }
}

function countKeys(value: Json): number {
  if (Array.isArray(value)) return value.reduce<number>((sum, item) => sum + countKeys(item), 0)
  if (!isJsonObject(value)) return 0
  return Object.values(value).reduce<number>((sum, item) => sum + 1 + countKeys(item), 0)
}

/** Strings followed by a colon, in a text that is known to be JSON. */
function countKeyTokens(text: string): number {
  let count = 0
  let at = text.indexOf('"')
  while (at >= 0) {
    let end = text.indexOf('"', at + 1)
    while (isEscaped(text, end)) end = text.indexOf('"', end + 1)
    let next = end + 1
    while (/\s/.test(text.charAt(next))) next += 1
    if (text[next] === ':') count += 1
    at = text.indexOf('"', next)
  }
  return count
}

/** Whether an odd number of backslashes stands before `index`. */
function isEscaped(text: string, index: number): boolean {
  let start = index
  while (text[start - 1] === '\\') start -= 1
  return (index - start) % 2 === 1
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
    const { document, originalOffset } = parseYaml(yaml, text)
    toOriginal = originalOffset
    const [error] = document.errors
    if (error !== undefined) {
      const offset = originalOffset(error.pos[0])
      const message = isTemplate(text, offset) ? unrenderedTemplate : yamlMessage(error)
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
    let low = 0
    let high = this.#starts.length - 1
    while (low < high) {
      const middle = Math.ceil((low + high) / 2)
      if ((this.#starts[middle] ?? 0) <= offset) low = middle
      else high = middle - 1
    }
    return { line: low + 1, column: offset - (this.#starts[low] ?? 0) + 1 }
  }
}
