import type { Duplex } from 'node:stream'

/**
 * Carries bytes both ways until both sides have ended; the end of one direction leaves the other open, where the
 * streams allow that (`allowHalfOpen`). An error on one side destroys the other. Resolves when both are closed; never
 * rejects.
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
        // Data of a side that ended properly may still be in flight on the other side.
        if (!from.readableEnded || !from.writableFinished) to.destroy()
      })
    }),
  )
}
