/** A stream of text with the prefix of its lines. */
export interface PrefixedStream {
  readonly prefix: string
  readonly chunks: AsyncIterable<Uint8Array>
}

const newline = 0x0a

/**
 * Merges streams by whole lines: one stream after the other with `inTurn`, else as the lines arrive. Ends when all have
 * ended, fails when one fails.
 */
export async function* mergeLines(
  streams: readonly PrefixedStream[],
  { inTurn }: { readonly inTurn: boolean },
): AsyncGenerator<Uint8Array, void> {
  if (inTurn) {
    for (const stream of streams) yield* prefixLines(stream)
    return
  }
  const iterators = streams.map((stream) => prefixLines(stream))
  const next = async (index: number) => ({ index, step: await iterators[index]?.next() })
  const pending = new Map(iterators.map((_, index) => [index, next(index)]))
  try {
    while (pending.size > 0) {
      const { index, step } = await Promise.race(pending.values())
      if (step === undefined || step.done === true) {
        pending.delete(index)
        continue
      }
      pending.set(index, next(index))
      yield step.value
    }
  } finally {
    // The readers that still wait end with the call's signal; their results are dropped.
    for (const waiting of pending.values()) waiting.catch(() => {})
  }
}

async function* prefixLines({ prefix, chunks }: PrefixedStream): AsyncGenerator<Uint8Array, void> {
  const head = Buffer.from(prefix)
  let rest: Uint8Array[] = []
  for await (const chunk of chunks) {
    // A line may span many chunks: its pieces are joined once.
    if (chunk.indexOf(newline) === -1) {
      rest.push(chunk)
      continue
    }
    const text = Buffer.concat([...rest, chunk])
    const lines: Buffer[] = []
    let start = 0
    for (let end = text.indexOf(newline); end !== -1; end = text.indexOf(newline, start)) {
      lines.push(head, text.subarray(start, end + 1))
      start = end + 1
    }
    rest = start < text.length ? [text.subarray(start)] : []
    if (lines.length > 0) yield Buffer.concat(lines)
  }
  if (rest.length > 0) yield Buffer.concat([head, ...rest, Buffer.from('\n')])
}
