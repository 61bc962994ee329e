import type { Duplex } from 'node:stream'

/**
 * Carries bytes both ways until both sides have ended; the end of one direction leaves the other open, where the
 * streams allow that (`allowHalfOpen`). A side that breaks off takes the other with it. Resolves when both are closed;
 * never rejects.
 */
export async function joinStreams(one: Duplex, other: Duplex): Promise<void> {
  const both = [
    [one, other],
    [other, one],
  ] as const
  await Promise.all(
    both.map(([from, to]) => {
      from.on('error', () => {})
      const closed = new Promise<void>((resolve) => {
        if (from.closed) resolve()
        else from.once('close', () => resolve())
      })
      from.pipe(to)
      return closed.then(() => {
        // What has ended in order may still be on its way out on the other side.
        if (!from.readableEnded || !from.writableFinished) to.destroy()
      })
    }),
  )
}
