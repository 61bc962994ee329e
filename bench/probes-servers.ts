/** The probed side of bench/probes.ts, in a process of its own: one HTTP, one TCP and one gRPC health server. */
import { createServer as createHttpServer } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import type { ServerHttp2Stream } from 'node:http2'
import { createServer as createTcpServer } from 'node:net'
import type { AddressInfo, Server } from 'node:net'

const http = createHttpServer((_request, response) => response.end('ok'))
const tcp = createTcpServer((socket) => void socket.on('error', () => undefined).resume())
const grpc = createHttp2Server()
grpc.on('stream', (stream: ServerHttp2Stream) => {
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
  stream.on('error', () => undefined)
  // HealthCheckResponse { status: SERVING }
  stream.end(Buffer.from([0, 0, 0, 0, 2, 8, 1]))
})
grpc.on('sessionError', () => undefined)

function listen(server: Server): Promise<number> {
  return new Promise((resolve) => {
    server.listen(0, '0.0.0.0', 4096, () => resolve((server.address() as AddressInfo).port))
  })
}

process.on('disconnect', () => process.exit())
process.send?.({ http: await listen(http), tcp: await listen(tcp), grpc: await listen(grpc) })
