/** Servers on loopback that behave in every way a probed container may. */
import { createServer as createHttpServer } from 'node:http'
import type { RequestListener } from 'node:http'
import { createSecureServer as createHttp2Server } from 'node:http2'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import { createServer as createHttpsServer } from 'node:https'
import { createServer as createTcpServer } from 'node:net'
import type { AddressInfo, Server, Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import type { Certificate } from './bad-certificate.ts'

export interface RunningServer {
  readonly port: number
  readonly close: () => Promise<void>
}

/** OpenSSL refuses short keys otherwise. */
const anyKey = 'DEFAULT@SECLEVEL=0'

/** What answers a connection; sockets are ended with the server. */
export function serveTcp(onSocket: (socket: Socket) => void, host = '127.0.0.1'): Promise<RunningServer> {
  return listen(
    createTcpServer((socket) => {
      socket.on('error', () => undefined)
      onSocket(socket)
    }),
    host,
  )
}

export function serveHttp(onRequest: RequestListener, host = '127.0.0.1'): Promise<RunningServer> {
  return listen(createHttpServer(onRequest), host)
}

export function serveHttps(onRequest: RequestListener, certificate: Certificate): Promise<RunningServer> {
  return listen(createHttpsServer({ ...certificate, ciphers: anyKey }, onRequest), '127.0.0.1')
}

/** As `serveTcp`, over TLS. */
export function serveTls(
  onSocket: (socket: Socket) => void,
  certificate: Certificate,
): Promise<RunningServer> {
  const server = createTlsServer({ ...certificate, ciphers: anyKey }, (socket) => {
    socket.on('error', () => undefined)
    onSocket(socket)
  })
  return listen(server, '127.0.0.1')
}

/** Speaks HTTP/2 and nothing else. */
export function serveHttp2(
  onRequest: (request: Http2ServerRequest, response: Http2ServerResponse) => void,
  certificate: Certificate,
): Promise<RunningServer> {
  const server = createHttp2Server({ ...certificate, ciphers: anyKey, allowHTTP1: false }, onRequest)
  server.on('sessionError', () => undefined)
  return listen(server, '127.0.0.1')
}

export async function listen(server: Server, host: string): Promise<RunningServer> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => undefined)
  })
  server.on('tlsClientError', () => undefined)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, host, resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
}
