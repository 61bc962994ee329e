import { PoddError } from '../../base/errors.ts'
import { isJsonObject } from '../../base/json.ts'
import { UsageError } from '../arguments/parse-arguments.ts'

/**
 * The path in an argument, whose braces and first dot may be left out (kubectl `cmd/get/customcolumn.go`
 * RelaxedJSONPathExpression, 1.36). Throws UsageError.
 */
export function readJsonPath(text: string): JsonPath {
  const inner = /^(?:\{([^{}]+)\}|([^{}]+))$/u.exec(text)
  const path = (inner?.[1] ?? inner?.[2])?.replace(/^[$@](?=[.[])/u, '')
  if (path === undefined) {
    throw new UsageError(
      `unexpected path ${JSON.stringify(text)}`,
      'Write a path such as .metadata.name or {.metadata.name}',
    )
  }
  const [word] = parseTemplate(`{${/^[.[]/u.test(path) ? path : `.${path}`}}`)
  return word?.kind === 'path' ? word.path : []
}

/**
 * The values at a path; a key that is missing gives none (`client-go/util/jsonpath/jsonpath.go`, 1.36, with its messages).
 * Other than there, a slice of one list doesn't depend on those before it, and what has no element at an index doesn't
 * exist for a filter.
 * @throws PoddError JSONPATH_FAILED where a value is none that a step can be taken into
 */
export function selectJsonPath(value: unknown, path: JsonPath): readonly unknown[] {
  return selectOfAll([value], path)
}

function selectOfAll(values: readonly unknown[], path: JsonPath): readonly unknown[] {
  return path.reduce<readonly unknown[]>((before, step) => take(before, step), values)
}

function take(values: readonly unknown[], step: JsonPathStep): readonly unknown[] {
  switch (step.kind) {
    case 'literal':
      return typeof step.value === 'string' ? [step.value] : values.map(() => step.value)
    case 'key':
      return values.flatMap((value) => valueOfKey(value, step.key))
    case 'dotted':
      return values.flatMap((value) => {
        const whole = valueOfKey(value, step.whole)
        return whole.length > 0 ? whole : selectJsonPath(value, step.path)
      })
    case 'index':
      return values.flatMap((value) => (value === null ? [] : elementAt(listOf(value, ''), step.index)))
    case 'slice':
      return values.flatMap((value) => (value === null ? [] : slice(listOf(value, ''), step)))
    case 'all':
      return values.flatMap((value) => childrenOf(value))
    case 'descend':
      return values.flatMap((value) => descend(value))
    case 'union':
      return step.paths.flatMap((path) => selectOfAll(values, path))
    case 'exists':
      return values.flatMap((value) => listOf(value, canFilter).filter((item) => exists(item, step.path)))
    case 'compare':
      return values.flatMap((value) =>
        listOf(value, canFilter).filter((item) => {
          const left = onlyOne(selectJsonPath(item, step.left))
          const right = left.length === 0 ? [] : onlyOne(selectJsonPath(item, step.right))
          return right.length > 0 && compares(left[0], step.operator, right[0])
        }),
      )
  }
}

function valueOfKey(value: unknown, key: string): readonly unknown[] {
  return isJsonObject(value) && Object.hasOwn(value, key) && value[key] !== undefined ? [value[key]] : []
}

const canFilter = ' and cannot be filtered'

/** @param otherwise what the message of what is no list ends with */
function listOf(value: unknown, otherwise: string): readonly unknown[] {
  if (isList(value)) return value
  throw failed(`${value === null ? 'null' : typeof value} is not array or slice${otherwise}`)
}

function elementAt(list: readonly unknown[], index: number): readonly unknown[] {
  const at = index < 0 ? index + list.length : index
  if (at < 0 || at >= list.length) throw outOfBounds(at, list.length)
  return [list[at]]
}

function slice(
  list: readonly unknown[],
  { from, to, step }: Extract<JsonPathStep, { kind: 'slice' }>,
): readonly unknown[] {
  const { length } = list
  const start = from < 0 ? from + length : from
  const end = to === undefined ? length : to < 0 ? to + length : to
  if (start === end) return []
  if (start < 0 || start >= length) throw outOfBounds(start, length)
  if (end < 0 || end > length) throw outOfBounds(end - 1, length)
  if (start > end) throw failed(`starting index ${start} is greater than ending index ${end}`)
  if (step <= 0) throw failed('step must be > 0')
  return list.slice(start, end).filter((_, index) => index % step === 0)
}

function childrenOf(value: unknown): readonly unknown[] {
  if (isList(value)) return value
  return isJsonObject(value) ? Object.values(value).filter((child) => child !== undefined) : []
}

/** All that holds something, from the outermost to the innermost: lists, mappings and texts that aren't empty. */
function descend(value: unknown): readonly unknown[] {
  if (typeof value === 'string') return value === '' ? [] : [value]
  const children = childrenOf(value)
  return children.length === 0 ? [] : [value, ...children.flatMap((child) => descend(child))]
}

function exists(item: unknown, path: JsonPath): boolean {
  try {
    return selectJsonPath(item, path).length > 0
  } catch (error) {
    // A step that cannot be taken leads to nothing.
    if (error instanceof PoddError) return false
    throw error
  }
}

function onlyOne(values: readonly unknown[]): readonly unknown[] {
  if (values.length > 1) throw failed('can only compare one element at a time')
  return values
}

/** Only what is of one type is compared, and only numbers and texts have an order. */
function compares(left: unknown, operator: Comparison, right: unknown): boolean {
  for (const side of [left, right])
    if (!['string', 'number', 'boolean'].includes(typeof side)) throw failed('invalid type for comparison')
  if (typeof left !== typeof right) throw failed('incompatible types for comparison')
  if (operator === '==' || operator === '!=') return (left === right) === (operator === '==')
  const order =
    typeof left === 'number' && typeof right === 'number'
      ? left - right
      : typeof left === 'string' && typeof right === 'string'
        ? Number(left > right) - Number(left < right)
        : undefined
  if (order === undefined) throw failed('invalid type for comparison')
  return { '<': order < 0, '<=': order <= 0, '>': order > 0, '>=': order >= 0 }[operator]
}

function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value)
}

function outOfBounds(index: number, length: number): PoddError {
  return failed(`array index out of bounds: index ${index}, length ${length}`)
}

function failed(message: string): PoddError {
  return new PoddError('JSONPATH_FAILED', message)
}

/** One step of a path: from the values before it to those after it. */
type JsonPathStep =
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

/** A part of a template: text outside of braces, a path in braces, or the words that enclose what is repeated. */
type TemplateWord =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'path' | 'range'; readonly path: JsonPath }
  | { readonly kind: 'end' }

const comparisons = ['==', '!=', '<', '<=', '>', '>='] as const

export type Comparison = (typeof comparisons)[number]

/** The parts of a template (`client-go/util/jsonpath/parser.go`, 1.36, its messages). Throws UsageError. */
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
  const known = comparisons.find((each) => each === operator)
  if (known === undefined) throw new SyntaxFailure(`unrecognized filter operator ${operator}`)
  return { kind: 'compare', operator: known, ...sides }
}

const letters: Readonly<Record<string, string>> = {
  a: '\u{7}',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  '\\': '\\',
}

/**
 * What text in such quotes stands for in Go (`strconv.UnquoteChar`); undefined where an escape is none. Of bytes
 * (`\xe9`, `\351`) those above 127 are the characters of that number.
 */
function unquoteText(text: string, quote: string): string | undefined {
  let isWrong = false
  const value = text.replaceAll(
    /\\(?:x([\da-fA-F]{2})|u([\da-fA-F]{4})|U([\da-fA-F]{8})|([0-3][0-7]{2})|(.?))/gu,
    (written, byte?: string, four?: string, eight?: string, octal?: string, letter?: string) => {
      const code =
        octal === undefined ? Number.parseInt(byte ?? four ?? eight ?? '', 16) : Number.parseInt(octal, 8)
      if (letter === undefined && code <= 0x10_ff_ff) return String.fromCodePoint(code)
      const found = letter === quote ? quote : letters[letter ?? '']
      isWrong ||= found === undefined
      return found ?? written
    },
  )
  return isWrong ? undefined : value
}
