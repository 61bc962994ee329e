import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect as connectPlain } from 'node:net'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { connect as connectTls } from 'node:tls'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { errorMessage } from '../../../src/base/errors.ts'
import { silentLogger } from '../../../src/base/logger.ts'
import type { Logger } from '../../../src/base/logger.ts'
import { OwnAuthority } from '../../../src/server/access/own-authority.ts'
import { createHandler } from '../../../src/server/create-handler.ts'
import { createHttpListener } from '../../../src/server/http/http-listener.ts'
import type { HttpListener } from '../../../src/server/http/http-listener.ts'
import type { ApiHandler } from '../../../src/server/requests/request.ts'
import { root } from '../../../src/server/requests/request.ts'
import { ApiRig } from '../../support/api-rig.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { slowness } from '../../support/slowness.ts'

/** Connections of each kind. */
const slowClients = 40
const requestMs = 500
const maxHeaderBytes = 512 * 1024

let directory: string
let listener: HttpListener
let sockets: Socket[]

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'podd-hostile-'))
  sockets = []
})
afterEach(async () => {
  for (const socket of sockets) socket.destroy()
  await listener.close(0)
  await rm(directory, { recursive: true, force: true })
})

/** A listener that is quickly out of patience. */
async function listen(isTls: boolean, handshakeMs = 600_000): Promise<() => Socket> {
  const rig = new ApiRig(directory)
  const authority = new OwnAuthority(directory, ['127.0.0.1'], () => {}, systemClock)
  const { certificate: cert, key } = authority.server()
  listener = createHttpListener({
    handler: createHandler(rig.readers(), directory, undefined, systemClock, silentLogger),
    identify: () => root,
    ...(isTls && { tls: { cert, key, handshakeMs } }),
    maxHeaderBytes,
    requestMs,
    clock: systemClock,
    logger: silentLogger,
  })
  if (!isTls) {
    const path = join(directory, 'socket')
    await once(listener.server.listen(path), 'listening')
    return () => connectPlain(path)
  }
  await once(listener.server.listen(0, '127.0.0.1'), 'listening')
  const address = listener.server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return () => connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })
}

async function listenManually(clock: ManualClock): Promise<string> {
  const readers = new ApiRig(directory).readers()
  const handler = createHandler(readers, directory, undefined, clock, silentLogger)
  listener = createHttpListener({
    handler,
    identify: () => root,
    maxHeaderBytes,
    requestMs: 30_000,
    clock,
    logger: silentLogger,
  })
  const path = join(directory, 'socket')
  await once(listener.server.listen(path), 'listening')
  return path
}

/** Sends a few bytes again and again, and never the last. */
function dribble(socket: Socket, first: string): Promise<void> {
  sockets.push(socket)
  socket.on('error', () => {})
  socket.resume()
  socket.write(first)
  const timer = setInterval(() => socket.write('x'), requestMs / 10)
  return closed(socket).finally(() => clearInterval(timer))
}

/** Whatever broke the connection. */
function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once('close', () => resolve()))
}

async function ask(socket: Socket): Promise<string> {
  sockets.push(socket)
  socket.end('GET /livez HTTP/1.1\r\nHost: podd\r\nConnection: close\r\n\r\n')
  return text(socket)
}

describe.each([
  ['the unix socket', false],
  ['TLS', true],
])('clients that never end their request, over %s', (_, isTls) => {
  it.each([
    ['their head', 'GET /api/v1/pods HTTP/1.1\r\nHost: podd\r\nX-Slow: '],
    ['their body', 'POST /podd/v1/gc HTTP/1.1\r\nHost: podd\r\nContent-Length: 1000\r\n\r\n'],
    [
      'a body that is read',
      'POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews HTTP/1.1\r\nHost: podd\r\nContent-Length: 1000\r\n\r\n',
    ],
  ])(
    `are cut off, ${slowClients} of them that send %s byte by byte, and nobody waits for them`,
    async (...[, first]) => {
      const open = await listen(isTls)
      const ends = Array.from({ length: slowClients }, () => dribble(open(), first))
      // On a machine that is busy the listener may lose patience with this one, too.
      await expect
        .poll(() => ask(open()).catch(String), { timeout: 30_000 * slowness })
        .toMatch(/^HTTP\/1\.1 200 /u)
      await Promise.all(ends)
    },
  )
})

it('cuts off who begins no handshake', async () => {
  await listen(true, requestMs)
  const address = listener.server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const ends = Array.from({ length: slowClients }, async () => {
    const socket = connectPlain(port, '127.0.0.1')
    sockets.push(socket)
    socket.on('error', () => {})
    socket.resume()
    await closed(socket)
  })
  expect(await Promise.all(ends)).toHaveLength(slowClients)
})

it('does not wait for a handshake when it closes', async () => {
  await listen(true)
  const address = listener.server.address()
  const socket = connectPlain(typeof address === 'object' && address !== null ? address.port : 0, '127.0.0.1')
  sockets.push(socket)
  const gone = closed(socket.on('error', () => {}).resume())
  await once(listener.server, 'connection')
  await listener.close(0)
  await gone
  expect(socket.destroyed).toBe(true)
})

it('survives a stream that fails, and cuts it off', async () => {
  const lines: string[] = []
  const handler: ApiHandler = {
    handle: async () => ({ status: 404, contentType: 'text/plain', body: '' }),
    upgrades: () => true,
    open: async () => ({
      headers: undefined,
      serve: async () => {
        throw new Error('a module is missing')
      },
    }),
  }
  const logger: Logger = {
    ...silentLogger,
    error: (fields, message) => void lines.push(`${message}: ${errorMessage(fields.err)}`),
  }
  listener = createHttpListener({
    handler,
    identify: () => root,
    maxHeaderBytes,
    requestMs,
    clock: systemClock,
    logger,
  })
  listener.server.listen(join(directory, 'stream.sock'))
  await once(listener.server, 'listening')
  const socket = connectPlain(join(directory, 'stream.sock'))
  sockets.push(socket)
  socket.write('GET /stream HTTP/1.1\r\nHost: podd\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
  await closed(socket.resume())
  expect(lines).toEqual(['API stream failed: a module is missing'])
})

it('cuts off who was refused and does not go', async () => {
  const clock = new ManualClock()
  const path = await listenManually(clock)
  const socket = connectPlain({ path, allowHalfOpen: true })
  sockets.push(socket)
  socket.write('nonsense\r\n\r\n')
  expect(await text(socket)).toMatch(/^HTTP\/1\.1 400 /u)
  const connections = (): Promise<number> =>
    new Promise((resolve, reject) =>
      listener.server.getConnections((error, count) => (error === null ? resolve(count) : reject(error))),
    )
  expect(await connections()).toBe(1)
  await clock.advance(5000)
  await expect.poll(connections).toBe(0)
})

it.each(['//[', 'http://[::', '/%', '/%ff', '/api/v1/namespaces/%/pods', '//', '*', '/\\..\\..'])(
  'refuses the target %s, and finds no fault of its own in it',
  async (target) => {
    const open = await listen(false)
    const socket = open()
    sockets.push(socket)
    socket.end(`GET ${target} HTTP/1.1\r\nHost: podd\r\nConnection: close\r\n\r\n`)
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 4\d\d /u)
  },
)
