import type { CST, Document, DocumentOptions, ParseOptions, SchemaOptions } from 'yaml'
import { isJson } from './text-faults.ts'
import { addSpace } from './spaced-text.ts'
import type { YamlLibrary } from './yaml-value.ts'
import { YamlValueError } from './yaml-value.ts'

const options: ParseOptions & DocumentOptions & SchemaOptions = {
  schema: 'failsafe',
  uniqueKeys: false,
  prettyErrors: false,
  logLevel: 'silent',
}

/** A document, whose places may be those of a text with more space: `originalOffset` says which ones they are in the given one. */
export interface ParsedYaml {
  readonly document: Document
  readonly originalOffset: (offset: number) => number
}

/**
 * One document of YAML, as Kubernetes reads it where the library is stricter or laxer (`scannerc.go`,
 * go.yaml.in/yaml/v2): `\'` in double quotes is an apostrophe, white space may lack (see spaced-text.ts), and an escape
 * names no half of a surrogate pair, but in JSON.
 *
 * @throws YamlValueError
 */
export function parseYaml(yaml: YamlLibrary, text: string): ParsedYaml {
  const document = parse(yaml, text)
  const asGiven = { document, originalOffset: (offset: number) => offset }
  const isGood = document.errors.length === 0
  if (isGood && !mayEndEarly.test(text)) return asGiven
  const spaced = addSpace(text)
  if (spaced === undefined) return asGiven
  const other = parse(yaml, spaced.text)
  if (isGood && other.errors.length > 0) return asGiven
  return { document: other, originalOffset: spaced.originalOffset }
}

/** A line with this end may be the first of a quoted scalar that the library ends there: it takes the last quote for its end. */
const mayEndEarly = /(?:''|\\")\r?$/m

function parse(yaml: YamlLibrary, text: string): Document {
  if (!specialEscape.test(text)) return yaml.parseDocument(text, options)
  // The steps of `parseDocument`; the scalars of a token keep its place, whatever their text becomes.
  const tokens = [...new yaml.Parser().parse(text)]
  const mayHaveHalves = text.trimStart().startsWith('{') && isJson(text)
  for (const token of tokens) readEscapes(token, mayHaveHalves)
  const [document] = new yaml.Composer(options).compose(tokens, true, text.length)
  return document ?? yaml.parseDocument(text, options)
}

/** `\'`, and what may be half of a surrogate pair. */
const specialEscape = /\\(?:'|u[dD]|U0000[dD])/

/** Without recursion: the nesting of the text is unbounded. */
function readEscapes(root: CST.Token, mayHaveHalves: boolean): void {
  const waiting: (CST.Token | null | undefined)[] = [root]
  while (waiting.length > 0) {
    const token = waiting.pop()
    if (token === null || token === undefined) continue
    if (token.type === 'double-quoted-scalar') {
      if (!mayHaveHalves) refuseHalves(token.source, token.offset)
      token.source = token.source.replaceAll(/\\./gsu, (escape) => (escape === "\\'" ? "'" : escape))
    } else if (token.type === 'document') waiting.push(token.value)
    else if ('items' in token) for (const { key, value } of token.items) waiting.push(key, value)
  }
}

const escapes = /\\(?:u([\dA-Fa-f]{4})|U([\dA-Fa-f]{8})|.)/gsu

function refuseHalves(source: string, offset: number): void {
  for (const { 1: short, 2: long, index } of source.matchAll(escapes)) {
    const code = Number.parseInt(short ?? long ?? '0', 16)
    if (code < 0xd800 || code > 0xdfff) continue
    const low = /^\\u([dD][c-fC-F][\dA-Fa-f]{2})/.exec(source.slice(index + (short === undefined ? 10 : 6)))
    const whole =
      low === null || code > 0xdbff
        ? undefined
        : String.fromCodePoint(
            0x10000 + ((code - 0xd800) << 10) + (Number.parseInt(low[1] ?? '', 16) - 0xdc00),
          )
    const written = whole?.codePointAt(0)?.toString(16).toUpperCase().padStart(8, '0')
    const advice = written === undefined ? '' : `: write \\U${written}, or the character itself`
    throw new YamlValueError(`an escape of half a character, which YAML has not${advice}`, offset + index)
  }
}
