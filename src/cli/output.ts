import { once } from 'node:events'
import type { Writable } from 'node:stream'
import { errorCode } from '../base/errors.ts'

/** Where a verb's data goes. */
export interface Output {
  /** Resolves once there is room for more; does nothing after the reader has gone. */
  write(data: string | Uint8Array): Promise<void>
  /** Aborted when the reader has gone away (`podd logs -f | head`). */
  readonly closed: AbortSignal
}

export function createOutput(stream: Writable): Output {
  const closed = new AbortController()
  stream.on('error', (error) => {
    closed.abort()
    if (errorCode(error) !== 'EPIPE') process.exitCode = 1
  })
  return {
    closed: closed.signal,
    async write(data) {
      if (closed.signal.aborted || stream.write(data)) return
      await once(stream, 'drain', { signal: closed.signal }).catch(() => {})
    },
  }
}
