import type { IncomingMessage } from 'node:http'
import { PoddError } from '../../base/errors.ts'

export interface Request {
  readonly method: string
  readonly path: string
  readonly body?: { readonly type: string; readonly text: string }
}

export interface Answer {
  readonly statusCode: number
  /** The body as it comes, once; throws what the connection fails with, or PoddError INTERRUPTED. */
  chunks(): AsyncGenerator<Buffer, void>
  /** All of the body; throws as `chunks`. */
  text(): Promise<string>
}

/**
 * Sends one request over a connection of its own to a unix socket; resolves with the answer once its head is there.
 * Rejects with what the connection failed with, and with PoddError INTERRUPTED once the signal is aborted, which ends the
 * connection also while the body comes.
 */
export async function sendRequest(
  socketPath: string,
  { method, path, body }: Request,
  signal: AbortSignal,
): Promise<Answer> {
  if (!/^[\u0021-\u007E]+$/u.test(path)) throw new Error(`no path of a request: ${JSON.stringify(path)}`)
  const orInterrupted = (error: unknown): unknown =>
    signal.aborted ? new PoddError('INTERRUPTED', 'interrupted', { cause: signal.reason }) : error
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const headers = { Host: 'podd', ...(body === undefined ? {} : { 'Content-Type': body.type }) }
    // Loaded with the first request: `--help` needs none.
    process
      .getBuiltinModule('node:http')
      .request({ socketPath, method, path, headers, signal, agent: false }, resolve)
      .on('error', (error) => reject(orInterrupted(error)))
      .end(body?.text)
  })
  async function* chunks(): AsyncGenerator<Buffer, void> {
    try {
      for await (const chunk of response) if (Buffer.isBuffer(chunk)) yield chunk
    } catch (error) {
      throw orInterrupted(error)
    }
  }
  return {
    statusCode: response.statusCode ?? 0,
    chunks,
    async text() {
      const all: Buffer[] = []
      for await (const chunk of chunks()) all.push(chunk)
      return Buffer.concat(all).toString('utf8')
    },
  }
}
