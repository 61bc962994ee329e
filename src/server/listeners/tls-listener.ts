import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { createServer } from 'node:net'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { Clock } from '../../base/clock.ts'
import { PoddError } from '../../base/errors.ts'
import type { ListenAddress } from '../../config/api-options.ts'
import type { Logger } from '../../base/logger.ts'
import type { OwnAuthority } from '../certificates/own-authority.ts'
import type { ApiHandler } from '../requests/api-request.ts'
import { anonymous } from '../requests/identity.ts'
import type { Identity } from '../requests/identity.ts'
import { createHttpListener } from './http-listener.ts'
import type { HttpListener } from './http-listener.ts'
import { identifyClient } from './identify-client.ts'
import type { TokenReader } from './identify-client.ts'
import { cannotListen } from './port-opener.ts'
import { RequestLimits } from './request-limits.ts'
import { UnknownConnections } from './unknown-connections.ts'

export interface TlsListenerOptions {
  readonly handler: ApiHandler
  readonly address: ListenAddress
  readonly authority: OwnAuthority
  readonly readToken: TokenReader
  readonly clock: Clock
  readonly logger: Logger
}

export interface TlsListener {
  /** The port is the one that the system gave where 0 was asked for. */
  readonly address: ListenAddress
  close(graceMs: number): Promise<void>
}

const mostConnections = 1000
/** The largest head of a request, in bytes: any client may make podd keep this much before it is identified. */
const mostHeaderBytes = 128 * 1024
const handshakeMs = 10_000

/**
 * The API over TLS, for clients with a certificate or a token. TLS, which takes memory, is loaded when the first client
 * connects. Throws PoddError SOCKET_FAILED where it can't listen, and the system's error where the authority's files can't be
 * read or written.
 */
export async function listenOverTls(options: TlsListenerOptions): Promise<TlsListener> {
  const { address, authority, logger } = options
  authority.server()
  const gate = createServer()
  gate.maxConnections = mostConnections
  let listener: HttpListener | undefined
  const open = (first: Socket): void => {
    // Nothing of it has been read: a socket emits no event before the next turn of the event loop.
    try {
      listener = createTlsListener(options)
    } catch (error) {
      logger.error({ err: error }, "cannot read or make the certificate of podd's API")
      first.destroy()
      gate.once('connection', open)
      return
    }
    const { server } = listener
    server.once('listening', () => server.emit('connection', first))
    // It takes over the listening socket from the gate.
    server.listen(gate)
  }
  gate.once('connection', open)
  const listening = once(gate, 'listening')
  gate.listen({ host: address.host, port: address.port })
  await listening.catch((error: unknown) => {
    throw cannotListen(address, 'api.listen', error)
  })
  const bound = gate.address()
  const port = typeof bound === 'object' && bound !== null ? bound.port : address.port
  return {
    address: { host: address.host, port },
    close: async (graceMs) => {
      if (listener !== undefined) return listener.close(graceMs)
      gate.close()
      await once(gate, 'close')
    },
  }
}

function createTlsListener({
  handler,
  authority,
  readToken,
  clock,
  logger,
}: TlsListenerOptions): HttpListener {
  const { TLSSocket: EncryptedSocket } = process.getBuiltinModule('node:tls')
  const limits = new RequestLimits(clock)
  const unknown = new UnknownConnections()
  const context = () => {
    const { certificate, key } = authority.server()
    return { cert: certificate, key, ca: authority.trusted() }
  }
  /** A client that guesses tokens counts as unknown. */
  const identify = (socket: TLSSocket, request: IncomingMessage, onUnknown: () => void): Identity => {
    try {
      return identifyClient(socket, request, readToken, clock.wallMs())
    } catch (error) {
      onUnknown()
      throw error
    }
  }
  const listener = createHttpListener({
    handler,
    mostHeaderBytes,
    identify(request) {
      const { socket } = request
      if (!(socket instanceof EncryptedSocket))
        throw new PoddError('INTERNAL', 'this connection is not encrypted')
      const stranger = `${anonymous.name} ${socket.remoteAddress}`
      const identity = identify(socket, request, () => limits.take(stranger))
      if (identity === anonymous) limits.take(stranger)
      else {
        limits.take(identity.name)
        unknown.know(socket)
      }
      return identity
    },
    isStill(request, { name, groups }) {
      const { socket } = request
      if (!(socket instanceof EncryptedSocket)) return false
      try {
        const now = identifyClient(socket, request, readToken, clock.wallMs())
        return now.name === name && now.groups.join('\n') === groups.join('\n')
      } catch {
        // Its certificate has expired, or its token is not known any more.
        return false
      }
    },
    // A client without a certificate may have a token, or make requests that are open to all.
    tls: { ...context(), requestCert: true, rejectUnauthorized: false, minVersion: 'TLSv1.2', handshakeMs },
    clock,
    logger,
  })
  const { server } = listener
  server.maxConnections = mostConnections
  // Checked before each handshake, so that no timer is needed for the certificate's end.
  server.prependListener('connection', (socket: Socket) => {
    if (!unknown.admit(socket)) socket.destroy()
    if (!authority.mustRenew) return
    try {
      listener.setSecureContext(context())
    } catch (error) {
      logger.error({ err: error }, "cannot renew the certificate of podd's API")
    }
  })
  return listener
}
