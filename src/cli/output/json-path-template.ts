import { UsageError } from '../arguments/usage-error.ts'
import { readJsonPath, selectJsonPath } from './json-path.ts'
import type { JsonPathStep } from './json-path.ts'

type Part =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'path'; readonly path: readonly JsonPathStep[] }
  | { readonly kind: 'range'; readonly path: readonly JsonPathStep[]; readonly parts: readonly Part[] }

const escapes: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r' }

/**
 * What `-o jsonpath=TEMPLATE` prints: text, paths in braces, quoted text in braces, and `{range PATH}…{end}`
 * (`client-go/util/jsonpath`, 1.36). Values of one path are separated by a space; objects and lists are JSON. Throws
 * UsageError for a template that can't be read.
 */
export function printJsonPath(template: string, value: unknown): string {
  return print(readTemplate(template), value)
}

function readTemplate(template: string): readonly Part[] {
  const words = splitTemplate(template)
  const stack: { readonly path: readonly JsonPathStep[]; readonly parts: Part[] }[] = [
    { path: [], parts: [] },
  ]
  for (const word of words) {
    const parts = stack.at(-1)?.parts ?? []
    if (!word.startsWith('{')) {
      parts.push({ kind: 'text', text: word })
      continue
    }
    const inner = word.slice(1, -1).trim()
    const range = /^range\s+(.+)$/su.exec(inner)?.[1]
    if (inner === 'end') {
      const ended = stack.pop()
      const outer = stack.at(-1)
      if (ended === undefined || outer === undefined)
        throw new UsageError(`${JSON.stringify(template)} has an {end} without a {range}`)
      outer.parts.push({ kind: 'range', ...ended })
    } else if (range !== undefined) stack.push({ path: readJsonPath(range), parts: [] })
    else if (/^["']/u.test(inner)) parts.push({ kind: 'text', text: unquote(inner) })
    else if (/^[@$]?$/u.test(inner)) parts.push({ kind: 'path', path: [] })
    else parts.push({ kind: 'path', path: readJsonPath(inner.replace(/^[@$]/u, '')) })
  }
  if (stack.length > 1) throw new UsageError(`${JSON.stringify(template)} has a {range} without an {end}`)
  return stack[0]?.parts ?? []
}

/** Texts in braces, with the braces, and those between them; a brace in quotes is text. */
function splitTemplate(template: string): readonly string[] {
  const words: string[] = []
  let start = 0
  let quote: string | undefined
  let isOpen = false
  for (let at = 0; at < template.length; at += 1) {
    const character = template[at]
    if (quote !== undefined) {
      if (character === '\\') at += 1
      else if (character === quote) quote = undefined
    } else if (isOpen && (character === '"' || character === "'")) quote = character
    else if (character === (isOpen ? '}' : '{')) {
      const end = isOpen ? at + 1 : at
      if (end > start) words.push(template.slice(start, end))
      start = end
      isOpen = !isOpen
    }
  }
  if (isOpen) throw new UsageError(`a brace of ${JSON.stringify(template)} is not closed`)
  if (start < template.length) words.push(template.slice(start))
  return words
}

function unquote(text: string): string {
  return text.slice(1, -1).replaceAll(/\\(.)/gu, (_, character: string) => escapes[character] ?? character)
}

function print(parts: readonly Part[], value: unknown): string {
  return parts
    .map((part) => {
      switch (part.kind) {
        case 'text':
          return part.text
        case 'path':
          return selectJsonPath(value, part.path)
            .map((each) => formatValue(each))
            .join(' ')
        case 'range':
          return selectJsonPath(value, part.path)
            .map((each) => print(part.parts, each))
            .join('')
      }
    })
    .join('')
}

/** Text as it stands, anything larger as JSON. */
export function formatValue(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}
