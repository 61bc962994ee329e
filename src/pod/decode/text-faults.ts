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

/**
 * Faults that go-yaml refuses in a text and the YAML library accepts: raw control characters, and directives other than
 * `%YAML 1.1` and `%TAG`.
 */
export function findTextFault(text: string): TextFault | undefined {
  const control = unreadable.exec(text)
  if (control !== null) {
    const code = (control[0].codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')
    const message = `a control character (U+${code}): write it as an escape in double quotes`
    return { message, offset: control.index }
  }
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
  return slices.length > 1 && slices.every((part) => isJson(text.slice(part.start, part.end)))
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

export function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    // It is not JSON.
    return false
  }
}
