import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/logger.ts'
import type { ListenAddress } from '../config/api-options.ts'
import { createHandler } from './create-handler.ts'
import { createHttpListener } from './http/http-listener.ts'
import { listenOnSocket } from './http/listen.ts'
import type { ServedPort } from './http/listen.ts'
import type { NetworkOptions } from './network-api.ts'
import { root } from './requests/request.ts'
import type { ApiReaders } from './requests/readers.ts'

interface ApiServerOptions {
  /** The path of the socket; its directory must exist. */
  readonly socketPath: string
  readonly podLogsDir: string
  readonly readers: ApiReaders
  /** Undefined: the API is served on the socket only. */
  readonly network: NetworkOptions | undefined
  /** Where the kubelet's read-only port is served; undefined: nowhere. */
  readonly readOnly: ListenAddress | undefined
  readonly clock: Clock
  readonly logger: Logger
}

/** The largest head of a request: root's commands may be as long as Linux allows, with each byte escaped. */
const maxHeaderBytes = 8 * 1024 * 1024

export interface ApiServer {
  /** The ports that podd listens at beside its socket. Each was tried once. */
  readonly ports: readonly ServedPort[]
  /**
   * Accepts no more requests, ends watches and followed logs, waits for requests in flight (`graceMs` at most, by
   * default 2 s) and removes the socket. Calling it again waits for the same end.
   */
  close(graceMs?: number): Promise<void>
  /** Recreates the socket where it was removed or replaced, and resolves with whether it was; see `ServedSocket`. */
  renewSocket(): Promise<boolean>
}

/**
 * Serves the API on a unix socket of mode 0600, which only root may open. Throws PoddError ALREADY_RUNNING where another
 * podd listens, or another error of listen.ts.
 */
export async function startApiServer(options: ApiServerOptions): Promise<ApiServer> {
  const { readers, podLogsDir, clock, logger } = options
  // What podd doesn't listen at is not loaded.
  const network =
    options.network && new (await import('./network-api.ts')).NetworkApi(options.network, clock, logger)
  const readOnly =
    options.readOnly &&
    (await import('./read-only-port.ts')).readOnlyPort(options.readOnly, readers, clock, logger)
  const handler = createHandler(readers, podLogsDir, network, clock, logger)
  const listener = createHttpListener({ handler, identify: () => root, maxHeaderBytes, clock, logger })
  const socket = await listenOnSocket(listener.server, options.socketPath)
  const ports = [network?.servePort(handler) ?? [], readOnly ?? []].flat()
  // The job that opens a port tries again, and tells why.
  await Promise.all(ports.map((port) => port.open().catch(() => undefined)))
  let closed: Promise<void> | undefined
  return {
    ports,
    close(graceMs = 2000) {
      closed ??= Promise.all([
        listener.close(graceMs),
        network?.close(graceMs),
        readOnly?.close(graceMs),
      ]).then(() => socket.remove())
      return closed
    },
    renewSocket: async () => closed === undefined && socket.renew(),
  }
}
