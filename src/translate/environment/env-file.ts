const [tab, lineFeed, carriageReturn, space, hash] = [0x09, 0x0a, 0x0d, 0x20, 0x23]

/** The content of a file of `NAME='value'` lines. */
export interface EnvFile {
  /** The first value of each name, of the lines before the problem where there is one. */
  readonly values: ReadonlyMap<string, string>
  /** Why the file can't be read from some line on; the message only names the line. */
  readonly problem: Error | undefined
}

/**
 * Reads a file of `NAME='value'` lines. Values stand in single quotes, literally, and may span lines; a comment may
 * follow them. A blank right after `=` makes the value empty (`pkg/kubelet/util/env/env_util.go`, 1.36).
 */
export function parseEnvFile(text: string): EnvFile {
  const values = new Map<string, string>()
  let at = 0
  while (at < text.length) {
    const start = skipBlanks(text, at)
    const first = text.charCodeAt(start)
    if (first === lineFeed || first === hash || isLineEnd(text, start)) {
      at = first === lineFeed ? start + 1 : nextLine(text, start)
      continue
    }
    const entry = readEntry(text, start)
    if ('problem' in entry) {
      const line = countLines(text, entry.at)
      const problem = new Error(`invalid environment variable format at line ${line}: ${entry.problem}`)
      return { values, problem }
    }
    if (!values.has(entry.name)) values.set(entry.name, entry.value)
    at = entry.next
  }
  return { values, problem: undefined }
}

/**
 * The value of one key; undefined where the file doesn't name it.
 * @throws Error where a line before the key is of another form
 */
export function envFileValue({ values, problem }: EnvFile, key: string): string | undefined {
  const value = values.get(key)
  if (value === undefined && problem !== undefined) throw problem
  return value
}

type Entry =
  | { readonly name: string; readonly value: string; readonly next: number }
  | { readonly problem: string; readonly at: number }

/** Linear, since containers write such files. */
function readEntry(text: string, start: number): Entry {
  const equals = text.indexOf('=', start)
  const lineEnd = text.indexOf('\n', start)
  if (equals < 0 || (lineEnd >= 0 && lineEnd < equals)) return { problem: "missing '='", at: start }
  const name = text.slice(start, equals)
  if (name.trim() === '') return { problem: 'empty variable name', at: start }
  if (isBlank(text, equals - 1)) return { problem: "whitespace before '=' is not allowed", at: start }
  const open = equals + 1
  if (isBlank(text, open)) return { name, value: '', next: nextLine(text, open) }
  if (text[open] !== "'") return { problem: 'value must be enclosed in single quotes', at: start }
  const close = text.indexOf("'", open + 1)
  if (close < 0) return { problem: 'unclosed single quote', at: start }
  const after = skipBlanks(text, close + 1)
  if (text[after] !== '#' && !isLineEnd(text, after)) {
    return { problem: 'unexpected content after closing quote', at: after }
  }
  const value = text.slice(open + 1, close).replaceAll('\r\n', '\n')
  return { name, value, next: nextLine(text, after) }
}

function isBlank(text: string, at: number): boolean {
  const character = text.charCodeAt(at)
  return character === space || character === tab
}

function skipBlanks(text: string, from: number): number {
  let at = from
  while (isBlank(text, at)) at += 1
  return at
}

function isLineEnd(text: string, at: number): boolean {
  if (at >= text.length || text.charCodeAt(at) === lineFeed) return true
  if (text.charCodeAt(at) !== carriageReturn) return false
  return at + 1 >= text.length || text.charCodeAt(at + 1) === lineFeed
}

/** The offset of the line after the one with `from`. */
function nextLine(text: string, from: number): number {
  const end = text.indexOf('\n', from)
  return end < 0 ? text.length : end + 1
}

/** The line of an offset, counted from 1. */
function countLines(text: string, offset: number): number {
  let line = 1
  for (let at = text.indexOf('\n'); at >= 0 && at < offset; at = text.indexOf('\n', at + 1)) line += 1
  return line
}
