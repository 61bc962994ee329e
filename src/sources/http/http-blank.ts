/** Nothing but blanks, comments, document markers and nulls: what a server sends that has lost its files. */
export function isBlank(bytes: Uint8Array): boolean {
  if (bytes.byteLength > 64 * 1024) return false
  const text = new TextDecoder().decode(bytes)
  return text.split('\n').every((line) => isBlankLine(line))
}

function isBlankLine(line: string): boolean {
  const isMarked = line.startsWith('---') || line.startsWith('...')
  const rest = (isMarked ? line.slice(3) : line).trimStart()
  const word = nullWords.find((candidate) => rest.startsWith(candidate)) ?? ''
  const behind = rest.slice(word.length).trimStart()
  return behind === '' || behind.startsWith('#')
}

const nullWords: readonly string[] = ['null', 'Null', 'NULL', '~']
