import type { YamlLibrary } from './yaml-value.ts'

/**
 * The most that one YAML document may have: as much as the API server takes for an object
 * (`staging/src/k8s.io/apiserver/pkg/server/config.go`, MaxRequestBodyBytes, 1.36).
 */
export const maxYamlBytes = 3 * 1024 * 1024

/** Keys and values of one YAML document: its tree takes about 1 KiB of memory for each. */
export const maxYamlScalars = 100_000

/** Each takes at least two bytes, including its separator. */
const leastBytesOfMany = 2 * maxYamlScalars

/** Why a document is too large to be read; undefined where it isn't. Holds one token in memory at a time. */
export function findOversize(yaml: YamlLibrary, text: string): string | undefined {
  const bytes = Buffer.byteLength(text)
  if (bytes > maxYamlBytes)
    return `the document has ${bytes} bytes, and a Kubernetes object has ${maxYamlBytes} at the most: put each object into a document of its own, with --- between them`
  if (bytes <= leastBytesOfMany) return undefined
  let scalars = 0
  for (const token of new yaml.Lexer().lex(text)) {
    if (isScalar(token)) scalars += 1
    if (scalars > maxYamlScalars)
      return `the document has more than ${maxYamlScalars} keys and values: put each object into a document of its own, with --- between them, or write it as JSON`
  }
  return undefined
}

/** The lexer's mark before a plain or block scalar, or a quoted one. */
function isScalar(token: string): boolean {
  return token === '\u001F' || token.startsWith('"') || token.startsWith("'")
}
