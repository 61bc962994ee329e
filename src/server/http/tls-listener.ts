import { once } from 'node:events'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { Clock } from '../../base/clock.ts'
import { PoddError } from '../../base/errors.ts'
import type { Logger } from '../../base/logger.ts'
import { TokenBucket } from '../../base/waits.ts'
import type { ListenAddress } from '../../config/api-options.ts'
import type { OwnAuthority } from '../access/own-authority.ts'
import { ApiError } from '../requests/api-error.ts'
import { anonymous, authenticatedGroup } from '../requests/request.ts'
import type { ApiHandler, Identity } from '../requests/request.ts'
import { createHttpListener } from './http-listener.ts'
import type { HttpListener } from './http-listener.ts'
import { cannotListen } from './listen.ts'

export interface TlsListener {
  /** The port is the one that the system gave where 0 was asked for. */
  readonly address: ListenAddress
  close(graceMs: number): Promise<void>
}

const maxConnections = 1000
/** The largest head of a request, in bytes: any client may make podd keep this much before it is identified. */
const maxHeaderBytes = 128 * 1024
const handshakeMs = 10_000

/**
 * The API over TLS, for clients with a certificate or a token. Throws PoddError SOCKET_FAILED where it can't listen, and the
 * system's error where the authority's files can't be read or written.
 */
export async function listenOverTls(
  handler: ApiHandler,
  address: ListenAddress,
  authority: OwnAuthority,
  readToken: TokenReader,
  clock: Clock,
  logger: Logger,
): Promise<TlsListener> {
  const listener = createTlsListener(handler, authority, readToken, clock, logger)
  const { server } = listener
  const listening = once(server, 'listening')
  server.listen({ host: address.host, port: address.port })
  await listening.catch((error: unknown) => {
    throw cannotListen(address, 'api.listen', error)
  })
  const bound = server.address()
  const port = typeof bound === 'object' && bound !== null ? bound.port : address.port
  return { address: { host: address.host, port }, close: (graceMs) => listener.close(graceMs) }
}

function createTlsListener(
  handler: ApiHandler,
  authority: OwnAuthority,
  readToken: TokenReader,
  clock: Clock,
  logger: Logger,
): HttpListener {
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
    maxHeaderBytes,
    identify(request) {
      const { socket } = request
      if (!(socket instanceof TLSSocket)) throw new PoddError('INTERNAL', 'this connection is not encrypted')
      const unknownClient = `${anonymous.name} ${socket.remoteAddress}`
      const identity = identify(socket, request, () => limits.take(unknownClient))
      if (identity === anonymous) limits.take(unknownClient)
      else {
        limits.take(identity.name)
        unknown.know(socket)
      }
      return identity
    },
    isStill(request, { name, groups }) {
      const { socket } = request
      if (!(socket instanceof TLSSocket)) return false
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
  server.maxConnections = maxConnections
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

/** The identity of a token; undefined for an unknown one. */
type TokenReader = (token: string) => Identity | undefined

/**
 * Identifies a client over TLS: by a client certificate that podd's authority has signed (CN is the user, each O a
 * group), by a bearer token, or as anonymous (`apiserver/pkg/authentication/request`, 1.36). A certificate may expire
 * after its handshake.
 * @throws ApiError Unauthorized for a certificate or token that is not valid
 */
function identifyClient(
  socket: TLSSocket,
  request: IncomingMessage,
  readToken: TokenReader,
  nowMs: number,
): Identity {
  const { subject, valid_to: validTo } = socket.getPeerCertificate()
  if (subject !== undefined) {
    const { CN: name, O: organizations = [] }: Subject = subject
    const isOver = nowMs >= Date.parse(validTo)
    if (!socket.authorized || isOver || typeof name !== 'string' || name === '')
      throw new ApiError(401, 'Unauthorized')
    const groups = typeof organizations === 'string' ? [organizations] : organizations
    return { name, groups: [...groups, authenticatedGroup] }
  }
  const { authorization } = request.headers
  const offered = tokenOffered(request.headers)
  if (authorization === undefined && offered === undefined) return anonymous
  const [, token = offered] = /^bearer +(?<token>\S+) *$/iu.exec(authorization ?? '') ?? []
  const identity = token === undefined ? undefined : readToken(token)
  if (identity === undefined) throw new ApiError(401, 'Unauthorized')
  return { ...identity, byToken: true }
}

const tokenProtocol = 'base64url.bearer.authorization.k8s.io.'

/** A browser can send no header with a WebSocket: it offers its token as a protocol (`apiserver/pkg/authentication/request/websocket/protocol.go`, 1.36). */
function tokenOffered({ upgrade, ...headers }: IncomingHttpHeaders): string | undefined {
  if (upgrade?.toLowerCase() !== 'websocket') return undefined
  const words = (headers['sec-websocket-protocol'] ?? '').split(',').map((word) => word.trim())
  const found = words.find((word) => word.startsWith(tokenProtocol))?.slice(tokenProtocol.length)
  return found === undefined ? undefined : Buffer.from(found, 'base64url').toString()
}

/** As Node has it: a header that occurs several times is a list. */
interface Subject {
  readonly CN?: string | readonly string[]
  readonly O?: string | readonly string[]
}

/** How many requests one client may send at once, and per second afterwards. kubectl itself keeps below 300 and 50. */
const burst = 1000
const perSecond = 200

/** The most clients that are tracked at a time; the least recently active is dropped first. */
const maxClients = 1000

export class RequestLimits {
  readonly #clock: Clock
  readonly #buckets = new Map<string, TokenBucket>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Counts a request of a client. Throws ApiError TooManyRequests. */
  take(client: string): void {
    const nowMs = this.#clock.monotonicMs()
    const bucket = this.#buckets.get(client) ?? new TokenBucket(perSecond, burst, nowMs)
    this.#buckets.delete(client)
    this.#buckets.set(client, bucket)
    if (!bucket.takeNow(nowMs))
      throw new ApiError(429, `too many requests: ${client} may send ${perSecond} in a second`, undefined, {
        retryAfterSeconds: 1,
      })
    const [oldest] = this.#buckets.keys()
    if (this.#buckets.size > maxClients && oldest !== undefined) this.#buckets.delete(oldest)
  }
}

/** The most connections of one address whose client is not identified yet. */
const maxOfAddress = 256

type Ends = Pick<Socket, 'remoteAddress' | 'remotePort'>

/** Bounds what an unauthenticated host may hold of a listener: connections, handshakes, and heads of requests. */
export class UnknownConnections {
  readonly #ports = new Map<string, Set<number>>()

  /** Counts a connection. Returns false where the address has reached its limit. */
  admit(socket: Ends & { once(event: 'close', listener: () => void): unknown }): boolean {
    const { remoteAddress: address = '', remotePort: port = 0 } = socket
    const ports = this.#ports.get(address) ?? new Set()
    if (ports.size >= maxOfAddress) return false
    this.#ports.set(address, ports.add(port))
    socket.once('close', () => this.#remove(address, port))
    return true
  }

  /** Releases a connection whose client was identified. */
  know({ remoteAddress, remotePort }: Ends): void {
    if (remoteAddress !== undefined && remotePort !== undefined) this.#remove(remoteAddress, remotePort)
  }

  #remove(address: string, port: number): void {
    const ports = this.#ports.get(address)
    ports?.delete(port)
    if (ports?.size === 0) this.#ports.delete(address)
  }
}
