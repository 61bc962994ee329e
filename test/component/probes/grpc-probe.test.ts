import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer as createHttp2Server } from 'node:http2'
import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import { connect } from 'node:net'
import { Server, ServerCredentials, status } from '@grpc/grpc-js'
import type { Metadata, handleUnaryCall } from '@grpc/grpc-js'
import { afterEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { loadProto } from '../../../src/grpc/load-proto.ts'
import { runGrpcProbe } from '../../../src/probes/grpc-probe.ts'
import { listen, serveHttp, serveTcp } from './bad-servers.ts'
import { slowness } from '../../support/slowness.ts'
import { freePort } from '../../support/free-port.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()))
})

type Check = handleUnaryCall<object, object>

async function serveHealth(check: Check, host = '127.0.0.1', wantedPort = 0): Promise<number> {
  const server = new Server()
  server.addService(loadProto('grpc-health.proto').service('grpc.health.v1.Health'), { Check: check })
  closers.push(() => server.forceShutdown())
  return new Promise((resolve, reject) => {
    server.bindAsync(`${host}:${wantedPort}`, ServerCredentials.createInsecure(), (error, port) =>
      error === null ? resolve(port) : reject(error),
    )
  })
}

async function closing(
  starting: Promise<{ readonly port: number; close: () => Promise<void> }>,
): Promise<number> {
  const { port, close } = await starting
  closers.push(close)
  return port
}

interface Given {
  readonly service?: string
  readonly podIp?: string
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

function probe(port: number, given: Given = {}) {
  const action = { port, service: given.service ?? '' }
  const target = { containerId: 'c', podIps: [given.podIp ?? '127.0.0.1'], ports: [] }
  return runGrpcProbe(action, target, 'kube-probe/1.36', {
    clock: systemClock,
    timeoutMs: given.timeoutMs ?? 2_000,
    signal: given.signal ?? new AbortController().signal,
  })
}

describe('a gRPC probe of a health service', () => {
  it.each([
    ['SERVING', { result: 'success', output: 'service healthy' }],
    ['NOT_SERVING', { result: 'failure', output: 'service unhealthy (responded with "NOT_SERVING")' }],
    ['UNKNOWN', { result: 'failure', output: 'service unhealthy (responded with "UNKNOWN")' }],
    [
      'SERVICE_UNKNOWN',
      { result: 'failure', output: 'service unhealthy (responded with "SERVICE_UNKNOWN")' },
    ],
  ])('that answers %s has the result that a kubelet’s has', async (answer, outcome) => {
    const port = await serveHealth((_call, reply) => reply(null, { status: answer }))
    expect(await probe(port)).toEqual(outcome)
  })

  it('asks for the service, as kube-probe', async () => {
    const asked: { request: object; metadata: Metadata }[] = []
    const port = await serveHealth((call, reply) => {
      asked.push(call)
      reply(null, { status: 'SERVING' })
    })
    await probe(port, { service: 'orders' })
    expect(asked[0]?.request).toEqual({ service: 'orders' })
    expect(String(asked[0]?.metadata.get('user-agent')[0])).toMatch(/^kube-probe\/1\.36 grpc-node-js\//u)
  })

  it.each([
    [2_000, '2000m'],
    [200_000_000, '99999999m'],
  ])('tells of a timeout of %i ms in the eight digits that gRPC has for it', async (timeoutMs, told) => {
    const server = createHttp2Server()
    const timeouts: unknown[] = []
    server.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
      timeouts.push(headers['grpc-timeout'])
      // HealthCheckResponse { status: SERVING }
      replyWith(stream, Buffer.from([0, 0, 0, 0, 2, 8, 1]))
    })
    const port = await closing(listen(server, '127.0.0.1'))
    expect(await probe(port, { timeoutMs })).toMatchObject({ result: 'success' })
    expect(timeouts).toEqual([told])
  })

  it('on IPv6 succeeds', async () => {
    const port = await serveHealth((_call, reply) => reply(null, { status: 'SERVING' }), '[::1]')
    expect(await probe(port, { podIp: '::1' })).toMatchObject({ result: 'success' })
  })

  it.each([
    [
      status.UNIMPLEMENTED,
      'error: this server does not implement the grpc health protocol (grpc.health.v1.Health): why',
    ],
    [status.NOT_FOUND, 'error: health rpc probe failed: rpc error: code = NotFound desc = why'],
    [status.UNAVAILABLE, 'error: health rpc probe failed: rpc error: code = Unavailable desc = why'],
    [status.CANCELLED, 'error: health rpc probe failed: rpc error: code = Canceled desc = why'],
    [status.DEADLINE_EXCEEDED, 'timeout: health rpc did not complete within 2s'],
  ])('that answers with the error %i fails, and says so as a kubelet does', async (code, output) => {
    const port = await serveHealth((_call, reply) => reply({ code, details: 'why' }))
    expect(await probe(port)).toEqual({ result: 'failure', output })
  })

  it('that hangs fails when its time is up', async () => {
    const port = await serveHealth(() => undefined)
    expect(await probe(port, { timeoutMs: 300 })).toEqual({
      result: 'failure',
      timedOut: true,
      output: 'timeout: health rpc did not complete within 300ms',
    })
  })

  it('that is slow but in time succeeds', async () => {
    const port = await serveHealth((_call, reply) => {
      setTimeout(() => reply(null, { status: 'SERVING' }), 100)
    })
    expect(await probe(port)).toMatchObject({ result: 'success' })
  })
})

describe('a gRPC probe of a server that', () => {
  const failedToConnect = (port: number) => ({
    result: 'failure',
    timedOut: true,
    output: `timeout: failed to connect service "127.0.0.1:${port}" within 150ms: context deadline exceeded`,
  })

  it('has no health service fails, and says that it is unimplemented', async () => {
    const server = new Server()
    closers.push(() => server.forceShutdown())
    const port = await new Promise<number>((resolve) => {
      server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (_error, bound) => resolve(bound))
    })
    expect(await probe(port)).toMatchObject({
      result: 'failure',
      output: expect.stringContaining('this server does not implement the grpc health protocol') as string,
    })
  })

  it('refuses connections fails when its time is up', async () => {
    const port = await freePort()
    expect(await probe(port, { timeoutMs: 150 })).toEqual(failedToConnect(port))
  })

  it('accepts and says nothing fails when its time is up', async () => {
    const port = await closing(serveTcp(() => undefined))
    expect(await probe(port, { timeoutMs: 150 })).toEqual(failedToConnect(port))
  })

  it('speaks HTTP/1.1 fails when its time is up', async () => {
    const port = await closing(serveHttp((_request, response) => response.end('hello')))
    expect(await probe(port, { timeoutMs: 150 })).toEqual(failedToConnect(port))
  })

  it('resets fails when its time is up', async () => {
    const port = await closing(serveTcp((socket) => socket.on('data', () => socket.resetAndDestroy())))
    expect(await probe(port, { timeoutMs: 150 })).toEqual(failedToConnect(port))
  })

  it('answers HTTP/2 with a page fails, and says that it is unimplemented', async () => {
    const server = createHttp2Server((_request, response) => {
      response.writeHead(404, { 'content-type': 'text/html' }).end('<html>')
    })
    const port = await closing(listen(server, '127.0.0.1'))
    expect(await probe(port)).toEqual({
      result: 'failure',
      output:
        'error: this server does not implement the grpc health protocol (grpc.health.v1.Health): ' +
        'Received HTTP status code 404',
    })
  })

  it.each<[string, (stream: ServerHttp2Stream) => void, string]>([
    ['resets the stream', (stream) => stream.close(11), 'code = ResourceExhausted desc ='],
    ['refuses the stream', (stream) => stream.close(7), 'code = Unavailable desc ='],
    ['drops the connection', (stream) => stream.session?.destroy(), 'code = Unavailable desc ='],
    ['sends no message', (stream) => replyWith(stream, Buffer.alloc(0)), 'code = Internal desc ='],
    [
      'sends half a message',
      (stream) => replyWith(stream, Buffer.from([0, 0, 0, 0, 9, 8])),
      'code = Internal',
    ],
    ['sends a flood', (stream) => replyWith(stream, Buffer.alloc(1_000_000)), 'code = Internal'],
    ['sends nonsense', (stream) => replyWith(stream, Buffer.from([0, 0, 0, 0, 1, 255])), 'code = Internal'],
  ])('%s fails, and says how', async (_what, answer, output) => {
    const server = createHttp2Server()
    server.on('stream', (stream: ServerHttp2Stream) => {
      stream.on('error', () => undefined)
      answer(stream)
    })
    const port = await closing(listen(server, '127.0.0.1'))
    expect(await probe(port)).toMatchObject({
      result: 'failure',
      output: expect.stringContaining(output) as string,
    })
  })

  it('comes up before its time is up succeeds', async () => {
    const port = await freePort()
    const running = probe(port, { timeoutMs: 3_000 })
    await serveHealth((_call, reply) => reply(null, { status: 'SERVING' }), '127.0.0.1', port)
    expect(await running).toMatchObject({ result: 'success' })
  })
})

function replyWith(stream: ServerHttp2Stream, body: Buffer): void {
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
  stream.end(body)
}

describe('a gRPC probe that is over', () => {
  it('because time was up has closed its connection', async () => {
    const closed = Promise.withResolvers<void>()
    const port = await closing(serveTcp((socket) => void socket.resume().on('close', () => closed.resolve())))
    expect(await probe(port, { timeoutMs: 100 })).toMatchObject({ timedOut: true })
    await closed.promise
  })
})

describe('a connection of a gRPC probe that the network swallows', () => {
  it('is given up with the probe', async () => {
    const { port, fill } = await serveNobody()
    await fill()
    // Sockets that wait to be accepted by this port (state SYN_SENT).
    const waiting = new RegExp(`:${port.toString(16).padStart(4, '0')} 02 `, 'giu')
    const connecting = (): number => [...readFileSync('/proc/self/net/tcp', 'utf8').matchAll(waiting)].length
    const before = connecting()
    expect(before).toBeGreaterThan(0)
    const running = probe(port, { timeoutMs: 500 })
    await expect.poll(connecting, { interval: 5 }).toBe(before + 1)
    expect(await running).toMatchObject({ timedOut: true })
    await expect.poll(connecting).toBe(before)
  })
})

/** A port with a full queue: the kernel drops what else wants to connect. */
async function serveNobody(): Promise<{ readonly port: number; readonly fill: () => Promise<void> }> {
  const program =
    "require('node:net').createServer().listen({ host: '127.0.0.1', port: 0, backlog: 1 }, function () {" +
    'console.log(this.address().port); process.kill(process.pid, "SIGSTOP") })'
  const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] })
  closers.push(() => child.kill('SIGKILL'))
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  const port = Number(line.toString())
  const fill = async (): Promise<void> => {
    for (let isFull = false; !isFull;) {
      const socket = connect({ host: '127.0.0.1', port }).on('error', () => undefined)
      closers.push(() => socket.destroy())
      isFull = await Promise.race([
        once(socket, 'connect').then(() => false),
        systemClock.sleep(300 * slowness).then(() => true),
      ])
    }
  }
  return { port, fill }
}

describe('a gRPC probe called off', () => {
  it('ends at once and closes its connection', async () => {
    const accepted = Promise.withResolvers<void>()
    const closed = Promise.withResolvers<void>()
    const port = await closing(
      serveTcp((socket) => {
        accepted.resolve()
        socket.resume()
        socket.on('close', () => closed.resolve())
      }),
    )
    const controller = new AbortController()
    const running = probe(port, { signal: controller.signal, timeoutMs: 60_000 })
    await accepted.promise
    controller.abort()
    expect(await running).toMatchObject({ result: 'unknown' })
    await closed.promise
  })
})
