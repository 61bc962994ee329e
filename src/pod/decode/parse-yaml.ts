import type { CST, Document, DocumentOptions, ParseOptions, SchemaOptions } from 'yaml'
import type { YamlLibrary } from './yaml-value.ts'

const options: ParseOptions & DocumentOptions & SchemaOptions = {
  schema: 'failsafe',
  uniqueKeys: false,
  prettyErrors: false,
  logLevel: 'silent',
}

/**
 * One document of YAML, in which `\'` in double quotes is an apostrophe, as Kubernetes reads it: of the escapes that
 * YAML doesn't have, that is the one that go-yaml takes (`scannerc.go`, go.yaml.in/yaml/v2).
 */
export function parseYaml(yaml: YamlLibrary, text: string): Document {
  if (!text.includes("\\'")) return yaml.parseDocument(text, options)
  // The steps of `parseDocument`; the scalars of a token keep its place, whatever their text becomes.
  const tokens = [...new yaml.Parser().parse(text)]
  for (const token of tokens) unescapeApostrophes(token)
  const [document] = new yaml.Composer(options).compose(tokens, true, text.length)
  return document ?? yaml.parseDocument(text, options)
}

/** Without recursion: the nesting of the text is unbounded. */
function unescapeApostrophes(root: CST.Token): void {
  const waiting: (CST.Token | null | undefined)[] = [root]
  while (waiting.length > 0) {
    const token = waiting.pop()
    if (token === null || token === undefined) continue
    if (token.type === 'double-quoted-scalar') {
      token.source = token.source.replaceAll(/\\./gsu, (escape) => (escape === "\\'" ? "'" : escape))
    } else if (token.type === 'document') waiting.push(token.value)
    else if ('items' in token) for (const { key, value } of token.items) waiting.push(key, value)
  }
}
