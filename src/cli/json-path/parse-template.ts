import { UsageError } from '../arguments/usage-error.ts'
import { unquoteText } from './unquote.ts'

/** One step of a path: from the values before it to those after it. */
export type JsonPathStep =
  | { readonly kind: 'literal'; readonly value: string | number | boolean }
  | { readonly kind: 'key'; readonly key: string }
  /** `['a.b']`: kubectl takes it for two keys. Here it is one, where there is such a one. */
  | { readonly kind: 'dotted'; readonly whole: string; readonly path: JsonPath }
  | { readonly kind: 'index'; readonly index: number }
  | { readonly kind: 'slice'; readonly from: number; readonly to: number | undefined; readonly step: number }
  | { readonly kind: 'all' }
  | { readonly kind: 'descend' }
  | { readonly kind: 'union'; readonly paths: readonly JsonPath[] }
  | { readonly kind: 'exists'; readonly path: JsonPath }
  | {
      readonly kind: 'compare'
      readonly left: JsonPath
      readonly operator: Comparison
      readonly right: JsonPath
    }

export type JsonPath = readonly JsonPathStep[]

export type Comparison = '==' | '!=' | '<' | '<=' | '>' | '>='

/** A part of a template: text outside of braces, a path in braces, or the words that enclose what is repeated. */
export type TemplateWord =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'path' | 'range'; readonly path: JsonPath }
  | { readonly kind: 'end' }

const comparisons: readonly string[] = ['==', '!=', '<', '<=', '>', '>='] satisfies readonly Comparison[]

/**
 * The parts of a template, in their order (`client-go/util/jsonpath/parser.go`, 1.36, with its messages). Throws
 * UsageError.
 */
export function parseTemplate(template: string): readonly TemplateWord[] {
  try {
    return parseWords(new Scanner(template))
  } catch (error) {
    if (error instanceof SyntaxFailure)
      throw new UsageError(`error parsing jsonpath ${template}, ${error.message}`)
    throw error
  }
}

class SyntaxFailure extends Error {}

/** A position in a text. */
class Scanner {
  readonly text: string
  at = 0

  constructor(text: string) {
    this.text = text
  }

  /** What a sticky expression matches here, which is passed. */
  take(expression: RegExp): RegExpExecArray | undefined {
    expression.lastIndex = this.at
    const found = expression.exec(this.text) ?? undefined
    this.at += found?.[0].length ?? 0
    return found
  }

  /** Throws what is wrong unless the expression matches here. */
  need(expression: RegExp, otherwise: string): RegExpExecArray {
    const found = this.take(expression)
    if (found === undefined) throw new SyntaxFailure(otherwise)
    return found
  }
}

function parseWords(scanner: Scanner): readonly TemplateWord[] {
  const words: TemplateWord[] = []
  while (scanner.at < scanner.text.length) {
    const text = scanner.take(/[^{]+/uy)
    if (text !== undefined) words.push({ kind: 'text', text: text[0] })
    if (scanner.take(/\{/uy) === undefined) continue
    const word = scanner.take(/[ @$]*(range|end)(?=[ \t\r\n.,[\]$@{}]|$)/uy)?.[1]
    const path = parsePath(scanner)
    words.push(word === 'end' ? { kind: 'end' } : { kind: word === 'range' ? 'range' : 'path', path })
  }
  return words
}

/** Steps up to the closing brace, which is passed. */
function parsePath(scanner: Scanner): JsonPath {
  const steps: JsonPathStep[] = []
  while (scanner.take(/[ @$]*\}/uy) === undefined) {
    scanner.take(/[ @$]*/uy)
    if (scanner.take(/\[\?\(/uy)) steps.push(parseFilter(scanner))
    else if (scanner.take(/\.\./uy)) {
      if (steps.at(-1)?.kind === 'descend') throw new SyntaxFailure('invalid multiple recursive descent')
      steps.push({ kind: 'descend' })
      if (scanner.take(/(?=[\p{L}\p{Nd}_])/uy)) steps.push(parseKey(scanner))
    } else if (scanner.take(/\[/uy)) steps.push(...parseBrackets(scanner))
    else if (scanner.take(/\./uy)) steps.push(parseKey(scanner))
    else steps.push(parseLiteral(scanner))
  }
  return steps
}

/** What one path says, in a template of its own. */
function parseNested(text: string): JsonPath {
  return parsePath(new Scanner(`${text}}`))
}

function parseKey(scanner: Scanner): JsonPathStep {
  const [text = ''] = scanner.take(/(?:\\[^]|[^\\ \t\r\n.,[\]$@{}])*/uy) ?? []
  return text === '*' ? { kind: 'all' } : { kind: 'key', key: text.replaceAll('\\', '') }
}

function parseLiteral(scanner: Scanner): JsonPathStep {
  const quote = scanner.take(/["']/uy)?.[0]
  if (quote !== undefined) {
    const [, text = ''] = scanner.need(
      quote === '"' ? /([^\n]*?)(?<!\\)"/uy : /([^\n]*?)(?<!\\)'/uy,
      'unterminated quoted string',
    )
    const value = unquoteText(text, quote)
    if (value === undefined)
      throw new SyntaxFailure(`unquote string ${quote}${text}${quote} error invalid syntax`)
    return { kind: 'literal', value }
  }
  const digits = scanner.take(/[+\-\p{Nd}][\p{Nd}.]*/uy)?.[0]
  if (digits !== undefined) {
    if (!/^[+-]?(?:\d+(?:\.\d*)?|\.\d+)$/u.test(digits))
      throw new SyntaxFailure(`cannot parse number ${digits}`)
    return { kind: 'literal', value: Number(digits) }
  }
  const word = scanner.take(/[\p{L}_][^ \t\r\n.,[\]$@{}]*/uy)?.[0]
  if (word === 'true' || word === 'false') return { kind: 'literal', value: word === 'true' }
  if (word !== undefined) throw new SyntaxFailure(`unrecognized identifier ${word}`)
  const [next] = scanner.take(/[^\r\n]/uy) ?? []
  if (next === undefined) throw new SyntaxFailure('unclosed action')
  const code = (next.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')
  throw new SyntaxFailure(`unrecognized character in action: U+${code} '${next}'`)
}

/** After `[`, up to the next `]`. */
function parseBrackets(scanner: Scanner): readonly JsonPathStep[] {
  const [, text = ''] = scanner.need(/([^\]\n]*)\]/uy, 'unterminated array')
  const parts = text.split(',')
  if (parts.length > 1)
    return [
      { kind: 'union', paths: parts.map((part) => parseNested(`[${part.replaceAll(/^ +| +$/gu, '')}]`)) },
    ]
  const quoted = /^'([^']*)'$/u.exec(text)?.[1]
  if (quoted === undefined) return [parseIndex(text)]
  const path = parseNested(`.${quoted}`)
  return path.length === 1 ? path : [{ kind: 'dotted', whole: quoted, path }]
}

function parseIndex(text: string): JsonPathStep {
  const slice = text === '*' ? ':' : text
  const [, first, second, third] = /^(-?\d*)(:-?\d*)?(:-?\d*)?$/u.exec(slice) ?? []
  if (first === undefined) throw new SyntaxFailure(`invalid array index ${text}`)
  const read = (digits = ''): number | undefined => {
    if (digits === '-' || digits.length > 15) throw new SyntaxFailure(`array index ${digits} is not a number`)
    return digits === '' ? undefined : Number(digits)
  }
  const from = read(first) ?? 0
  if (second === undefined) return { kind: 'index', index: from }
  return { kind: 'slice', from, to: read(second.slice(1)), step: read(third?.slice(1)) ?? 1 }
}

/** After `[?(`, up to `)]`; a bracket in its only quoted text is text. */
function parseFilter(scanner: Scanner): JsonPathStep {
  const start = scanner.at
  scanner.take(/[^)"'\n]*/uy)
  const quote = scanner.take(/["']/uy)?.[0]
  if (quote !== undefined)
    scanner.need(quote === '"' ? /[^\n]*?(?<!\\)"/uy : /[^\n]*?(?<!\\)'/uy, 'unterminated filter')
  scanner.take(/[^)\n]*/uy)
  const text = scanner.text.slice(start, scanner.at)
  scanner.need(/(?=\))/uy, 'unterminated filter')
  scanner.need(/\)\]/uy, 'unclosed array expect ]')
  const [, left, operator = '', right = ''] = /^([^!<>=]+)([!<>=]+)(.+)$/u.exec(text) ?? []
  if (left === undefined) return { kind: 'exists', path: parseNested(text) }
  const sides = { left: parseNested(left), right: parseNested(right) }
  if (!isComparison(operator)) throw new SyntaxFailure(`unrecognized filter operator ${operator}`)
  return { kind: 'compare', operator, ...sides }
}

function isComparison(operator: string): operator is Comparison {
  return comparisons.includes(operator)
}
