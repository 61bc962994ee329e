/* Go's texts for errors, so that probe messages equal the kubelet's. */
import { isIPv6 } from 'node:net'
import { errorCode, errorMessage } from '../base/errors.ts'
import { isParserError } from '../base/http.ts'

/** `host:port`, IPv6 in brackets, as Go's net.JoinHostPort. */
export function joinHostPort(host: string, port: number): string {
  return isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`
}

const connectWords: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connect: connection refused',
  EHOSTUNREACH: 'connect: no route to host',
  ENETUNREACH: 'connect: network is unreachable',
  ETIMEDOUT: 'connect: connection timed out',
  ECONNRESET: 'connect: connection reset by peer',
  EACCES: 'connect: permission denied',
  EADDRNOTAVAIL: 'connect: cannot assign requested address',
  EMFILE: 'socket: too many open files',
  ENFILE: 'socket: too many open files in system',
  ENOBUFS: 'socket: no buffer space available',
}

const lookupWords: Readonly<Record<string, string>> = {
  ENOTFOUND: 'no such host',
  EAI_AGAIN: 'temporary failure in name resolution',
}

/** Why a connection couldn't be made. */
export function describeDialError(error: unknown, host: string, port: number): string {
  const code = errorCode(error) ?? ''
  const lookup = lookupWords[code]
  if (lookup !== undefined) return `dial tcp: lookup ${host}: ${lookup}`
  return `dial tcp ${joinHostPort(host, port)}: ${connectWords[code] ?? errorMessage(error)}`
}

const readWords: Readonly<Record<string, string>> = {
  ECONNRESET: 'read: connection reset by peer',
  EPIPE: 'write: broken pipe',
  ETIMEDOUT: 'read: connection timed out',
}

/** Why a made connection broke. */
export function describeReadError(error: unknown, host: string, port: number): string {
  const code = errorCode(error) ?? ''
  if (code === 'UND_ERR_SOCKET') return 'EOF'
  if (isParserError(error))
    return `net/http: HTTP/1.x transport connection broken: malformed HTTP response: ${errorMessage(error)}`
  const words = readWords[code]
  return words === undefined ? errorMessage(error) : `read tcp ${joinHostPort(host, port)}: ${words}`
}

const ownFaults: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM', 'EADDRNOTAVAIL'])

/** Whether this host was short of what a probe takes, which isn't the container's fault. */
export function isOwnFault(error: unknown): boolean {
  return ownFaults.has(errorCode(error) ?? '')
}
