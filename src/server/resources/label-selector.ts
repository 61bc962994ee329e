import { labelValue, qualifiedName } from '../../pod/validation/name-rules.ts'
import { ApiError } from '../requests/api-error.ts'

type Labels = Readonly<Record<string, string>>

/** Whether labels meet a selector. */
export type LabelSelector = (labels: Labels) => boolean

const operators = ['=', '==', '!=', 'in', 'notin', '<', '>'] as const

interface Token {
  readonly kind: 'word' | 'symbol' | 'end'
  readonly text: string
}

/**
 * Parses `a=b, a!=b, a, !a, a in (x,y), a notin (x), a>1, a<1`, all of which must hold; an empty text selects everything
 * (`k8s.io/apimachinery/pkg/labels/selector.go`, 1.36).
 * @throws ApiError BadRequest
 */
export function parseLabelSelector(text: string): LabelSelector {
  const tokens = new Tokens(text)
  const requirements: LabelSelector[] = []
  const first = tokens.peek()
  if (first.kind === 'symbol' && first.text === ',')
    throw invalid(`found ',', expected: !, identifier, or 'end of string'`)
  while (tokens.peek().kind !== 'end') {
    requirements.push(parseRequirement(tokens))
    const after = tokens.next()
    if (after.kind === 'end') break
    if (after.text !== ',' || after.kind !== 'symbol')
      throw invalid(`found '${after.text}', expected: ',' or 'end of string'`)
    if (tokens.peek().kind === 'end') throw invalid("found '', expected: identifier after ','")
  }
  return (labels) => requirements.every((isMet) => isMet(labels))
}

function parseRequirement(tokens: Tokens): LabelSelector {
  const isNegated = tokens.takeSymbol('!')
  const key = tokens.next()
  if (key.kind !== 'word') throw unexpected(key, '!, identifier')
  const [wrongKey] = qualifiedName(key.text)
  if (wrongKey !== undefined) throw unmet(`key: Invalid value: ${JSON.stringify(key.text)}: ${wrongKey}`)
  const has = (labels: Labels): boolean => Object.hasOwn(labels, key.text)
  if (isNegated) return (labels) => !has(labels)
  const after = tokens.peek()
  if (after.kind === 'end' || (after.kind === 'symbol' && after.text === ',')) return has
  tokens.next()
  const operator = operators.find((each) => each === after.text)
  if (operator === undefined) throw unexpected(after, operators.join(', '))
  const values = operator === 'in' || operator === 'notin' ? parseValues(tokens) : [parseValue(tokens)]
  for (const [index, value] of values.entries()) {
    const [wrong] = labelValue(value)
    if (wrong !== undefined)
      throw unmet(`values[${index}][${key.text}]: Invalid value: ${JSON.stringify(value)}: ${wrong}`)
  }
  return requirementOf(key.text, operator, values)
}

function requirementOf(
  key: string,
  operator: (typeof operators)[number],
  values: readonly string[],
): LabelSelector {
  const valueOf = (labels: Labels): string | undefined =>
    Object.hasOwn(labels, key) ? labels[key] : undefined
  const among = new Set(values)
  const isAmong = (labels: Labels): boolean => among.has(valueOf(labels) ?? '') && Object.hasOwn(labels, key)
  switch (operator) {
    case '=':
    case '==':
    case 'in':
      return isAmong
    case '!=':
    case 'notin':
      return (labels) => !isAmong(labels)
    case '<':
    case '>': {
      const [limit = ''] = values
      if (!isInteger(limit))
        throw unmet(
          `values[0]: Invalid value: ${JSON.stringify(limit)}: for 'Gt', 'Lt' operators, the value must be an integer`,
        )
      return (labels) => {
        const value = valueOf(labels) ?? ''
        if (!isInteger(value)) return false
        return operator === '<' ? BigInt(value) < BigInt(limit) : BigInt(value) > BigInt(limit)
      }
    }
  }
}

function isInteger(text: string): boolean {
  return /^-?\d{1,19}$/u.test(text)
}

/** The value after `=` and similar operators; nothing means an empty value. */
function parseValue(tokens: Tokens): string {
  const token = tokens.peek()
  if (token.kind === 'end' || (token.kind === 'symbol' && token.text === ',')) return ''
  if (token.kind !== 'word') throw unexpected(token, 'identifier')
  return tokens.next().text
}

/** The values of `in` and `notin`: `(x,y)`, where an empty place is an empty value. */
function parseValues(tokens: Tokens): readonly string[] {
  const open = tokens.next()
  if (open.text !== '(') throw unmet(`found '${open.text}' expected: '('`)
  const values: string[] = []
  for (;;) {
    const token = tokens.peek()
    values.push(token.kind === 'word' ? tokens.next().text : '')
    const after = tokens.next()
    if (after.kind === 'symbol' && after.text === ')') return values
    if (after.kind !== 'symbol' || after.text !== ',') throw unexpected(after, "',' or ')'")
  }
}

class Tokens {
  readonly #tokens: readonly Token[]
  #at = 0

  constructor(text: string) {
    const found = text.matchAll(/\s+|(?<symbol>==|!=|[=!(),<>])|(?<word>[^\s=!(),<>]+)/gu)
    this.#tokens = [...found].flatMap(({ groups }): Token[] => {
      if (groups?.['symbol'] !== undefined) return [{ kind: 'symbol', text: groups['symbol'] }]
      return groups?.['word'] === undefined ? [] : [{ kind: 'word', text: groups['word'] }]
    })
  }

  peek(): Token {
    return this.#tokens[this.#at] ?? { kind: 'end', text: '' }
  }

  next(): Token {
    const token = this.peek()
    this.#at += 1
    return token
  }

  takeSymbol(text: string): boolean {
    const token = this.peek()
    if (token.kind !== 'symbol' || token.text !== text) return false
    this.#at += 1
    return true
  }
}

function unexpected(token: Token, expected: string): ApiError {
  return unmet(`found '${token.text}', expected: ${expected}`)
}

/** The error of one requirement. */
function unmet(what: string): ApiError {
  return invalid(`unable to parse requirement: ${what}`)
}

function invalid(what: string): ApiError {
  return new ApiError(400, what)
}
