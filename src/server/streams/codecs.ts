import type { IncomingHttpHeaders } from 'node:http'
import type { Duplex } from 'node:stream'
import type { RunningCommand } from '../requests/pod-reach.ts'

/** How a client and podd speak over a connection once it is upgraded. */
interface StreamCodec {
  /** The method, and the root of the paths, of requests that ask for it. */
  readonly method: 'GET' | 'POST'
  readonly root: string
  /** What the answer's head says to a request that asks for this codec; undefined where it asks for another. */
  answer(headers: IncomingHttpHeaders): Readonly<Record<string, string>> | undefined
}

/** Carries the input and output of a command. */
export interface ExecCodec extends StreamCodec {
  /** The words to run; takes no byte more from the connection than they need. Throws ApiError. */
  readCommand(
    request: { readonly headers: IncomingHttpHeaders; readonly query: URLSearchParams },
    connection: Duplex,
  ): Promise<readonly string[]>
  /** Joins the command with the client until both are done; never rejects. */
  serve(connection: Duplex, command: RunningCommand): Promise<void>
}

/** Carries connections to ports of a pod. */
export interface ForwardCodec extends StreamCodec {
  /** Dials what the query names, where it does; gives what serves the connection until it is done. Throws ApiError. */
  prepare(
    query: URLSearchParams,
    dial: (port: number) => Promise<Duplex>,
  ): Promise<(connection: Duplex) => Promise<void>>
}
