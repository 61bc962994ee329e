import { connect as connectTcp, isIP } from 'node:net'
import type { Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { buildConnector } from 'undici'

interface Endpoint {
  readonly scheme: 'http' | 'https'
  readonly host: string
  readonly port: number
}

/** A connector for one undici client, and the way to end what it opened, also while it is still connecting. */
export interface HttpConnection {
  readonly connector: buildConnector.connector
  readonly destroy: () => void
  /** Whether a connection stood when things went wrong. */
  readonly isConnected: () => boolean
}

/**
 * Connects as the kubelet's probes do: directly (no proxy), nothing of the server's certificate
 * verified, no client certificate, and a host name sent by SNI only where there is one.
 */
export function createHttpConnection(endpoint: Endpoint): HttpConnection {
  let socket: Socket | undefined
  let connected = false
  const connector: buildConnector.connector = (_options, callback) => {
    const opening = openSocket(endpoint)
    socket = opening
    const onError = (error: Error): void => callback(error, null)
    opening.once('error', onError)
    opening.once(endpoint.scheme === 'https' ? 'secureConnect' : 'connect', () => {
      connected = true
      opening.removeListener('error', onError)
      callback(null, opening)
    })
  }
  const destroy = (): void => {
    // A socket may still fail while it closes; its errors no longer matter.
    socket?.on('error', () => undefined)
    socket?.destroy()
  }
  return { connector, destroy, isConnected: () => connected }
}

function openSocket({ scheme, host, port }: Endpoint): Socket {
  if (scheme === 'http') return connectTcp({ host, port })
  return connectTls({
    host,
    port,
    rejectUnauthorized: false,
    // Nothing is verified, so old and short keys do no further harm.
    ciphers: 'DEFAULT@SECLEVEL=0',
    ALPNProtocols: ['h2', 'http/1.1'],
    ...(isIP(host) === 0 ? { servername: host } : {}),
  })
}
