/** The longest line; podd sends shorter ones. */
const mostCharacters = 16 * 1024 * 1024

/** The lines of a stream of UTF-8, in the batches in which they came. Rejects with the stream's error. */
export async function* readLines(stream: ReadableStream<Uint8Array>): AsyncGenerator<readonly string[]> {
  const reader = stream.getReader()
  const decoder = new TextDecoder()
  let rest = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      const text = done ? decoder.decode() : decoder.decode(value, { stream: true })
      const lines = text.split('\n')
      lines[0] = rest + (lines[0] ?? '')
      rest = lines.pop() ?? ''
      if (rest.length > mostCharacters) throw new Error('a line is too long')
      if (lines.length > 0) yield lines
      if (done) break
    }
    if (rest !== '') yield [rest]
  } finally {
    // A stream that failed has thrown already, and needs no cancelling.
    reader.cancel().catch(() => {})
  }
}
