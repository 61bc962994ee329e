/** More of them say nothing more. */
const mostFound = 20

type Level = { readonly keys: Set<string>; key: string } | { index: number }

/** One that does not end is none in JSON, and costs no more than others. */
const token = /"(?:[^"\\]|\\.)*"?|[{}[\],]/gsu

/**
 * The fields that stand twice in an object of a JSON text, as `data.a` or `spec.containers[0].image`: of these a parser
 * takes the last one. The text must be well-formed.
 */
export function findDuplicateFields(text: string): readonly string[] {
  const levels: Level[] = []
  const found = new Set<string>()
  let isKey = false
  for (const [piece] of text.matchAll(token)) {
    const level = levels.at(-1)
    if (piece === '{') {
      levels.push({ keys: new Set(), key: '' })
      isKey = true
    } else if (piece === '[') levels.push({ index: 0 })
    else if (piece === '}' || piece === ']') {
      levels.pop()
      isKey = false
    } else if (piece === ',') {
      if (level !== undefined && 'index' in level) level.index += 1
      isKey = level !== undefined && 'keys' in level
    } else if (isKey && level !== undefined && 'keys' in level) {
      const key: unknown = JSON.parse(piece)
      level.key = String(key)
      if (level.keys.has(level.key)) found.add(pathOf(levels))
      level.keys.add(level.key)
      isKey = false
      if (found.size >= mostFound) break
    }
  }
  return [...found]
}

function pathOf(levels: readonly Level[]): string {
  return levels
    .map((level) => ('index' in level ? `[${level.index}]` : `.${level.key}`))
    .join('')
    .slice(1)
}
