import type { Writable } from 'node:stream'
import { PoddError, errorCode, errorMessage } from '../../base/errors.ts'

/** The output of a verb. */
export interface Output {
  /** Resolves once the data is written; does nothing after a write has failed. */
  write(data: string | Uint8Array): Promise<void>
  /**
   * Aborted when nothing more can be written: the reader has closed the pipe (`podd logs -f | head`), or the disk is
   * full.
   */
  readonly closed: AbortSignal
  /** Why something was not written: WRITE_FAILED; undefined where the reader has closed the pipe. */
  failure(): PoddError | undefined
}

export function createOutput(stream: Writable): Output {
  const closed = new AbortController()
  let failure: PoddError | undefined
  const onFailure = (error: unknown): void => {
    if (closed.signal.aborted) return
    if (errorCode(error) !== 'EPIPE') failure = writeFailed(error)
    closed.abort()
  }
  stream.on('error', onFailure)
  return {
    closed: closed.signal,
    failure: () => failure,
    async write(data) {
      if (closed.signal.aborted) return
      await new Promise<void>((resolve) => {
        stream.write(data, (error) => {
          if (error instanceof Error) onFailure(error)
          resolve()
        })
      })
    },
  }
}

function writeFailed(cause: unknown): PoddError {
  const why =
    cause instanceof Error && 'errno' in cause && typeof cause.errno === 'number'
      ? process.getBuiltinModule('node:util').getSystemErrorMessage(cause.errno)
      : errorMessage(cause)
  return new PoddError('WRITE_FAILED', `write error: ${why}`, { cause })
}
