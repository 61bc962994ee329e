import { PoddError, errorMessage } from '../../base/errors.ts'
import { canonicalJson } from '../../base/json.ts'
import { UsageError } from '../arguments/usage-error.ts'
import { selectJsonPath } from './select-path.ts'
import type { JsonPath } from './parse-template.ts'
import { parseTemplate } from './parse-template.ts'

/** A template that was read. */
export interface JsonPathTemplate {
  readonly text: string
  readonly parts: readonly Part[]
}

type Part =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'path'; readonly path: JsonPath }
  | { readonly kind: 'range'; readonly path: JsonPath; readonly parts: readonly Part[] }

/**
 * A template: text, paths and quoted text in braces, and `{range PATH}…{end}` (`client-go/util/jsonpath`, 1.36). Other than
 * there, a range has to have an end. Throws UsageError.
 */
export function readTemplate(template: string): JsonPathTemplate {
  const stack: { readonly path: JsonPath; readonly parts: Part[] }[] = [{ path: [], parts: [] }]
  for (const word of parseTemplate(template)) {
    if (word.kind === 'range') stack.push({ path: word.path, parts: [] })
    else if (word.kind === 'end') {
      const ended = stack.pop()
      const outer = stack.at(-1)
      if (ended === undefined || outer === undefined)
        throw new UsageError(`error parsing jsonpath ${template}, not in range, nothing to end`)
      outer.parts.push({ kind: 'range', ...ended })
    } else stack.at(-1)?.parts.push(word.kind === 'text' ? word : { kind: 'path', path: word.path })
  }
  if (stack.length > 1) throw new UsageError(`error parsing jsonpath ${template}, {range} without {end}`)
  return { text: template, parts: stack[0]?.parts ?? [] }
}

/**
 * What `-o jsonpath=TEMPLATE` prints. Values of one path are separated by a space; objects and lists are JSON.
 * @throws PoddError JSONPATH_FAILED where a path leads into what has no such part
 */
export function printTemplate({ text, parts }: JsonPathTemplate, value: unknown): string {
  return executing(text, () =>
    resultsOf(parts, value)
      .map((values) => values.map((each) => formatValue(each)).join(' '))
      .join(''),
  )
}

/** What `-o jsonpath-as-json=TEMPLATE` prints: the values of each path as a list. */
export function printTemplateAsJson({ text, parts }: JsonPathTemplate, value: unknown): string {
  return executing(text, () =>
    resultsOf(parts, value)
      .map((values) => `${JSON.stringify(values, undefined, 4)}\n`)
      .join(''),
  )
}

function executing(template: string, print: () => string): string {
  try {
    return print()
  } catch (error) {
    if (!(error instanceof PoddError)) throw error
    const message = `error executing jsonpath ${JSON.stringify(template)}: ${errorMessage(error)}`
    throw new PoddError(error.code, message, { cause: error })
  }
}

/** The values of each part, in the order in which they are printed. */
function resultsOf(parts: readonly Part[], value: unknown): readonly (readonly unknown[])[] {
  return parts.flatMap((part) => {
    switch (part.kind) {
      case 'text':
        return [[part.text]]
      case 'path':
        return [selectJsonPath(value, part.path)]
      case 'range':
        return selectJsonPath(value, part.path).flatMap((each) => resultsOf(part.parts, each))
    }
  })
}

/** Text as it stands, anything larger as Go writes JSON: with sorted keys, and nothing that HTML would take for its own. */
export function formatValue(value: unknown): string {
  if (typeof value === 'string') return value
  return canonicalJson(value).replaceAll(
    /[<>&]/gu,
    (character) => `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`,
  )
}
