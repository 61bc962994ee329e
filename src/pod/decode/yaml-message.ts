import type { YAMLError } from 'yaml'

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
export const unrenderedTemplate =
  'a template that was not rendered (`{{ … }}`): podd reads YAML, such as `helm template` writes'

/** Whether the line at `offset` has a template's braces. */
export function isTemplate(text: string, offset: number): boolean {
  const start = text.lastIndexOf('\n', offset - 1) + 1
  const end = text.indexOf('\n', offset)
  return /\{\{|\{%/.test(text.slice(start, end < 0 ? text.length : end))
}

export const unknownTag = 'podd does not know this tag; a value that begins with `!` needs quotes'
