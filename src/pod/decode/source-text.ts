import type { Position } from './read-documents.ts'

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

/** Whether a text ends within a line, which suggests truncation. JSON may lack a line end after its last bracket. */
export function endsInsideLine(text: string): boolean {
  const content = text.trimEnd()
  return !text.slice(content.length).includes('\n') && !content.endsWith('}') && !content.endsWith(']')
}
