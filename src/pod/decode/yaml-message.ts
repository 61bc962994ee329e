import type { YAMLError } from 'yaml'

/**
 * What is wrong with a text that is no YAML, in words that quote nothing of it: it may be a Secret. Where the
 * library's own words quote nothing either, they stand.
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
      // What it found stands behind the colon.
      return message.replace(/: .*/s, '')
    default:
      return message
  }
}

export const unknownTag = 'podd does not know this tag; a value that begins with `!` needs quotes'
