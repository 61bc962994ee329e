import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { TLSSocket } from 'node:tls'
import { ApiError } from '../requests/api-error.ts'
import { anonymous, authenticatedGroup } from '../requests/identity.ts'
import type { Identity } from '../requests/identity.ts'

/** The identity of a token; undefined for an unknown one. */
export type TokenReader = (token: string) => Identity | undefined

/**
 * Identifies a client over TLS: by a client certificate that podd's authority has signed (CN is the user, each O a
 * group), by a bearer token, or as anonymous (`apiserver/pkg/authentication/request`, 1.36). A certificate may expire
 * after its handshake.
 * @throws ApiError Unauthorized for a certificate or token that is not valid
 */
export function identifyClient(
  socket: TLSSocket,
  request: IncomingMessage,
  readToken: TokenReader,
  nowMs: number,
): Identity {
  const { subject, valid_to: validTo } = socket.getPeerCertificate()
  if (subject !== undefined) {
    const { CN: name, O: organizations = [] }: Subject = subject
    const isOver = nowMs >= Date.parse(validTo)
    if (!socket.authorized || isOver || typeof name !== 'string' || name === '') throw unauthorized()
    const groups = typeof organizations === 'string' ? [organizations] : organizations
    return { name, groups: [...groups, authenticatedGroup] }
  }
  const { authorization } = request.headers
  const offered = tokenOffered(request.headers)
  if (authorization === undefined && offered === undefined) return anonymous
  const [, token = offered] = /^bearer +(?<token>\S+) *$/iu.exec(authorization ?? '') ?? []
  const identity = token === undefined ? undefined : readToken(token)
  if (identity === undefined) throw unauthorized()
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

function unauthorized(): ApiError {
  return new ApiError(401, 'Unauthorized')
}
