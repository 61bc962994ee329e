/* Texts as go-yaml scans them, where the library differs: characters, directives, white space that may be missing. */
import { parseJson } from '../../base/json.ts'

/** Part of a text. */
export interface Slice {
  readonly start: number
  readonly end: number
}

export interface TextFault {
  readonly message: string
  readonly offset: number
}

/** The characters that go-yaml accepts (`readerc.go`, go.yaml.in/yaml/v2). */
const unreadable = /[^\t\n\r\u0020-\u007E\u0085\u00A0-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/u

const directive = /^%(\S*)[ \t]*(\S*)/gmu

const webPage = /^\s*(?=<(?:!doctype\s+html|html)\b)/iu

/**
 * Faults that go-yaml refuses in a text and the YAML library accepts: raw control characters, and directives other than
 * `%YAML 1.1` and `%TAG`. Also a page of HTML, which a proxy or a login answers with: as YAML it may be a string.
 */
export function findTextFault(text: string): TextFault | undefined {
  const control = unreadable.exec(text)
  if (control !== null) {
    const code = (control[0].codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')
    const message = `a control character (U+${code}): write it as an escape in double quotes`
    return { message, offset: control.index }
  }
  const page = webPage.exec(text)
  if (page !== null) return { message: 'a page of HTML, and no manifest', offset: page[0].length }
  return text.startsWith('%') || text.includes('\n%') ? findDirective(text) : undefined
}

/** Directives come before a document's content. */
function findDirective(text: string): TextFault | undefined {
  const body = /^[^%#\s]/mu.exec(text)?.index ?? text.length
  for (const { 1: name, 2: value, index } of text.matchAll(directive)) {
    if (index > body) return undefined
    if (name === 'TAG' || (name === 'YAML' && value === '1.1')) continue
    const message =
      name === 'YAML'
        ? 'Kubernetes reads YAML 1.1: leave this directive out'
        : 'a line that begins with `%` is a directive, and this one is none that YAML knows'
    return { message, offset: index }
  }
  return undefined
}

/** The JSON documents of a part that has several one after the other; the part itself where it isn't that. */
export function splitJson(text: string, slice: Slice): readonly Slice[] {
  const slices: Slice[] = []
  let start = skipBlanks(text, slice.start)
  while (start < slice.end) {
    const end = text[start] === '{' ? endOfObject(text, start, slice.end) : undefined
    if (end === undefined) return [slice]
    slices.push({ start, end })
    start = skipBlanks(text, end)
  }
  return slices.length > 1 &&
    slices.every((part) => parseJson(text.slice(part.start, part.end)) !== undefined)
    ? slices
    : [slice]
}

function skipBlanks(text: string, from: number): number {
  let at = from
  while (' \t\r\n'.includes(text[at] ?? '#')) at += 1
  return at
}

/** The offset after the brace that closes the one at `start`. */
function endOfObject(text: string, start: number, limit: number): number | undefined {
  let depth = 0
  for (let at = start; at < limit; at += 1) {
    const character = text[at]
    if (character === '"') {
      at = endOfString(text, at)
      if (at < 0) return undefined
    } else if (character === '{' || character === '[') depth += 1
    else if (character === '}' || character === ']') {
      depth -= 1
      if (depth === 0) return at + 1
    }
  }
  return undefined
}

/** The offset of the quote that closes the one at `start`; negative without one. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at += 1) {
    if (text[at] === '\\') at += 1
    else if (text[at] === '"') return at
  }
  return -1
}

/** A text with added white space, and where each of its places was before. */
export interface SpacedText {
  readonly text: string
  readonly originalOffset: (offset: number) => number
}

/** The most characters that are added: more are wanted only by a text that is made for it. */
const maxAdded = 1024 * 1024

const blanks = ' \t'
const lineEnds = '\r\n'
const flowMarks = ',[]{}'

/**
 * The text with the white space that YAML asks for and go-yaml doesn't (`scannerc.go`, go.yaml.in/yaml/v2): lines of a
 * quoted scalar or of brackets may begin at any column, and a comment may follow these directly. The added space
 * changes no value. Undefined where nothing is to be added, or a quote or bracket stays open. Linear in the text.
 */
export function addSpace(text: string): SpacedText | undefined {
  const scanner = new SpaceScanner(text)
  return scanner.scan() ? scanner.result() : undefined
}

class SpaceScanner {
  readonly #text: string
  #at = 0
  /** The column that lines of a quoted scalar or of brackets have to be right of. */
  #parent = -1
  #added = 0
  readonly #parts: string[] = []
  #copied = 0
  /** In the new text: where space was added, and how much until there. */
  readonly #places: { readonly offset: number; readonly added: number }[] = []

  constructor(text: string) {
    this.#text = text
  }

  result(): SpacedText | undefined {
    if (this.#added === 0) return undefined
    const places = this.#places
    return {
      text: this.#parts.join('') + this.#text.slice(this.#copied),
      originalOffset: (offset) => {
        const before = countUpTo(places, offset, (place) => place.offset)
        return offset - (places[before - 1]?.added ?? 0)
      },
    }
  }

  /** False where a quote or bracket stays open, or too much would be added. */
  scan(): boolean {
    while (this.#at < this.#text.length) {
      const lineStart = this.#at
      this.#skip(' ')
      this.#parent = this.#at - lineStart - 1
      if (!this.#scanLine(lineStart)) return false
    }
    return true
  }

  /** The rest of a line of block style, with what it opens. */
  #scanLine(lineStart: number): boolean {
    while (this.#at < this.#text.length) {
      this.#skip(blanks)
      const start = this.#at
      const character = this.#text[start] ?? ''
      if (lineEnds.includes(character)) {
        this.#at += 1
        return true
      }
      if (character === '#') this.#skipLine()
      else if ('-?:'.includes(character) && this.#isBlankAt(start + 1)) {
        this.#parent = start - lineStart
        this.#at += 1
      } else if ('&!*'.includes(character)) this.#skipWord()
      else if (character === '|' || character === '>') {
        this.#skipDeeper({ isBlock: true })
        return true
      } else if ('"\'[{'.includes(character)) {
        if (!('[{'.includes(character) ? this.#scanBrackets() : this.#scanQuoted())) return false
        if (this.#text[this.#at] === '#') this.#add(1)
        if (this.#text[this.#at] === ':') {
          this.#parent = start - lineStart
          this.#at += 1
        }
      } else if (this.#skipPlain()) this.#parent = start - lineStart
      else if (lineEnds.includes(this.#text[this.#at] ?? '')) {
        this.#skipDeeper({ isBlock: false })
        return true
      }
    }
    return true
  }

  /** Moves past a plain scalar of one line, and past the colon of a key; whether it is one. */
  #skipPlain(): boolean {
    for (; this.#at < this.#text.length; this.#at += 1) {
      const character = this.#text[this.#at] ?? ''
      if (lineEnds.includes(character)) return false
      if (character === ':' && this.#isBlankAt(this.#at + 1)) {
        this.#at += 1
        return true
      }
      if (blanks.includes(character) && this.#text[this.#at + 1] === '#') return false
    }
    return false
  }

  /**
   * Moves past the lines of a block or plain scalar: those that are empty or right of the parent; a comment ends a
   * plain one.
   */
  #skipDeeper({ isBlock }: { readonly isBlock: boolean }): void {
    this.#skipLine()
    while (this.#at < this.#text.length) {
      this.#at += 1
      const lineStart = this.#at
      this.#skip(' ')
      const first = this.#text[this.#at] ?? ''
      const isDeeper = first === '' || lineEnds.includes(first) || this.#at - lineStart > this.#parent
      if (!isDeeper || (!isBlock && first === '#')) {
        this.#at = lineStart
        return
      }
      this.#skipLine()
    }
  }

  /** Moves past the quote that closes the one here; false where none does. */
  #scanQuoted(): boolean {
    const quote = this.#text[this.#at]
    for (this.#at += 1; this.#at < this.#text.length; this.#at += 1) {
      const character = this.#text[this.#at]
      if (character === '\n' && !this.#indent({ evenTabs: true })) return false
      if (character === '\\' && quote === '"' && this.#text[this.#at + 1] !== '\n') this.#at += 1
      else if (character === quote) {
        this.#at += 1
        if (quote === '"' || this.#text[this.#at] !== quote) return true
      }
    }
    return false
  }

  /** Moves past the bracket that closes the one here; false where none does. */
  #scanBrackets(): boolean {
    let depth = 0
    while (this.#at < this.#text.length) {
      const character = this.#text[this.#at] ?? ''
      if (character === '"' || character === "'") {
        if (!this.#scanQuoted()) return false
        if (this.#text[this.#at] === '#') this.#add(1)
        continue
      }
      if (character === '#') {
        this.#skipLine()
        continue
      }
      if (character === '\n' && !this.#indent({ evenTabs: false })) return false
      if (character === '[' || character === '{') depth += 1
      else if (character === ']' || character === '}') depth -= 1
      else if (character !== ',' && character !== ':' && !/\s/.test(character)) {
        this.#skipFlowPlain()
        continue
      }
      this.#at += 1
      if (depth === 0) return true
      if (flowMarks.includes(character) && this.#text[this.#at] === '#') this.#add(1)
    }
    return false
  }

  /** Moves past a plain scalar in brackets, on one line. */
  #skipFlowPlain(): void {
    for (; this.#at < this.#text.length; this.#at += 1) {
      const character = this.#text[this.#at] ?? ''
      const next = this.#text[this.#at + 1] ?? ''
      if (flowMarks.includes(character) || lineEnds.includes(character)) return
      if (character === ':' && (flowMarks.includes(next) || this.#isBlankAt(this.#at + 1))) return
      if (blanks.includes(character) && next === '#') return
    }
  }

  /** Has the line after this line end begin right of the parent; false where too much was added. */
  #indent({ evenTabs }: { readonly evenTabs: boolean }): boolean {
    const next = this.#text[this.#at + 1]
    if (next === undefined || lineEnds.includes(next)) return true
    let column = 0
    while (this.#text[this.#at + 1 + column] === ' ' && column <= this.#parent) column += 1
    if (column > this.#parent || (!evenTabs && this.#text[this.#at + 1 + column] === '\t')) return true
    return this.#add(this.#parent + 1 - column, 1)
  }

  #add(count: number, ahead = 0): boolean {
    const at = this.#at + ahead
    this.#parts.push(this.#text.slice(this.#copied, at), ' '.repeat(count))
    this.#copied = at
    this.#added += count
    this.#places.push({ offset: at + this.#added, added: this.#added })
    return this.#added <= maxAdded
  }

  #skip(characters: string): void {
    while (this.#at < this.#text.length && characters.includes(this.#text[this.#at] ?? '')) this.#at += 1
  }

  #skipWord(): void {
    while (!this.#isBlankAt(this.#at)) this.#at += 1
  }

  /** To the end of the line, not past it. */
  #skipLine(): void {
    const end = this.#text.indexOf('\n', this.#at)
    this.#at = end < 0 ? this.#text.length : end
  }

  #isBlankAt(at: number): boolean {
    return at >= this.#text.length || /\s/.test(this.#text[at] ?? '')
  }
}

/** How many of items in ascending order are at most so large, by halving. */
export function countUpTo<T>(items: readonly T[], most: number, sizeOf: (item: T) => number): number {
  let low = 0
  let high = items.length
  while (low < high) {
    const middle = (low + high) >> 1
    const item = items[middle]
    if (item !== undefined && sizeOf(item) <= most) low = middle + 1
    else high = middle
  }
  return low
}
