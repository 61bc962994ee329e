import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { parseAst } from 'vite'

/** A regular expression of the source. */
export interface FoundExpression {
  /** `src/pod/schema/issues.ts:9` */
  readonly place: string
  readonly source: string
  readonly flags: string
}

/** Every regular expression that is written as a literal in the files of a directory, below it too. */
export function findExpressions(directory: string): readonly FoundExpression[] {
  return readdirSync(directory, { withFileTypes: true, recursive: true }).flatMap((entry) => {
    if (!entry.isFile() || !entry.name.endsWith('.ts')) return []
    const path = join(entry.parentPath, entry.name)
    const text = readFileSync(path, 'utf8')
    return literalsOf(parseAst(text, { lang: 'ts' })).map(({ source, flags, offset }) => {
      const line = text.slice(0, offset).split('\n').length
      return { place: `${path}:${line}`, source, flags }
    })
  })
}

interface Literal {
  readonly source: string
  readonly flags: string
  readonly offset: number
}

function literalsOf(node: unknown): readonly Literal[] {
  if (Array.isArray(node)) return node.flatMap((item) => literalsOf(item))
  if (typeof node !== 'object' || node === null) return []
  const own = literalOf(node)
  return own === undefined ? Object.values(node).flatMap((value) => literalsOf(value)) : [own]
}

function literalOf(node: object): Literal | undefined {
  if (!('regex' in node) || !('start' in node) || typeof node.start !== 'number') return undefined
  const { regex } = node
  if (typeof regex !== 'object' || regex === null || !('pattern' in regex) || !('flags' in regex))
    return undefined
  const { pattern, flags } = regex
  if (typeof pattern !== 'string' || typeof flags !== 'string') return undefined
  return { source: pattern, flags, offset: node.start }
}

/** Of every kind that expressions tell apart. */
const commonCharacters = [' ', '\n', 'a', 'A', '0', '-', '.', '/', '"', '\\']

/**
 * Texts that keep an expression busy for as long as it can be: each character that it names, alone and in pairs, over
 * and over, behind each of the words that it wants, and with an end that fits none.
 */
export function* hardTexts({ source }: Pick<FoundExpression, 'source'>, length: number): Generator<string> {
  const plain = source.replaceAll(/\\[a-zA-Z]|\(\?(?:[:=!]|<[=!])|[\\^$.|?*+()[\]{}]/gu, '\u{0}')
  const words = plain.split('\u{0}').filter((word) => word !== '')
  const named = [...new Set(`${words.join('')}${source.replaceAll(/[A-Za-z0-9]/gu, '')}`)]
  const characters = [...new Set([...commonCharacters, ...named.slice(0, 8)])]
  const units = [...characters, ...pairs(characters.slice(-9)), ...words]
  const heads = new Set(['', words.join(''), ...words])
  for (const unit of units) {
    const body = unit.repeat(Math.ceil(length / unit.length))
    for (const head of [...heads].slice(0, 3)) yield `${head}${body}\u{1}`
  }
}

function pairs(characters: readonly string[]): readonly string[] {
  return characters.flatMap((first) => characters.map((second) => first + second))
}
