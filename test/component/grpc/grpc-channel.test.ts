import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http2'
import type { Http2Server, ServerHttp2Session, ServerHttp2Stream, Settings } from 'node:http2'
import { createServer as createSocketServer } from 'node:net'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { status } from '@grpc/grpc-js'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { GrpcChannel } from '../../../src/grpc/grpc-channel.ts'
import type { GrpcChannelOptions, GrpcStatus } from '../../../src/grpc/grpc-channel.ts'

let directory: string
let socketPath: string
const cleanups: (() => void)[] = []

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'podd-grpc-'))
  socketPath = join(directory, 'grpc.sock')
  cleanups.push(() => rmSync(directory, { recursive: true }))
})

afterEach(() => {
  for (const cleanup of cleanups.splice(0).reverse()) cleanup()
})

async function serve(
  answer: (stream: ServerHttp2Stream) => void,
  settings: Settings = {},
): Promise<ServerHttp2Session[]> {
  const server: Http2Server = createServer({ settings })
  const sessions: ServerHttp2Session[] = []
  server.on('session', (session) => {
    sessions.push(session)
    session.on('stream', (stream) => {
      stream.on('error', () => {})
      answer(stream)
    })
  })
  server.listen(socketPath)
  await once(server, 'listening')
  cleanups.push(() => {
    for (const session of sessions) session.destroy()
    server.close()
  })
  return sessions
}

function open(options: Omit<GrpcChannelOptions, 'address'> = {}): GrpcChannel {
  const channel = new GrpcChannel({ address: { path: socketPath }, ...options })
  cleanups.push(() => channel.close())
  return channel
}

interface Ended {
  readonly messages: readonly string[]
  readonly status: GrpcStatus
}

function call(
  channel: GrpcChannel,
  options: { readonly fails?: boolean; readonly message?: Buffer } = {},
): Promise<Ended> & {
  cancel(): void
} {
  const messages: string[] = []
  let cancel = (): void => {}
  const ended = new Promise<Ended>((resolve) => {
    cancel = channel.call({
      path: '/a.B/C',
      message: options.message ?? Buffer.from('asked'),
      headers: { 'a-header': 'told' },
      decode: (bytes) => {
        if (options.fails === true) throw new Error('not what was expected')
        return bytes.toString()
      },
      onMessage: (message) => messages.push(message),
      onStatus: (ending) => resolve({ messages, status: ending }),
    })
  })
  return Object.assign(ended, { cancel })
}

function frame(text: string, flag = 0): Buffer {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(text.length)
  return Buffer.concat([Buffer.from([flag]), length, Buffer.from(text)])
}

function reply(stream: ServerHttp2Stream, frames: readonly Buffer[]): void {
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
  stream.end(Buffer.concat(frames))
}

describe('a call over one unix socket', () => {
  it('carries a message and headers, and gets each message of the reply', async () => {
    const asked: unknown[] = []
    await serve((stream) => {
      stream.once('data', (bytes: Buffer) => asked.push(bytes))
      stream.once('end', () => reply(stream, [frame('one'), frame(''), frame('two')]))
    })
    const { messages, status: ending } = await call(open())
    expect(ending.code).toBe(status.OK)
    expect(messages).toEqual(['one', '', 'two'])
    expect(asked).toEqual([frame('asked')])
  })

  it('gets the status that the server gave, with what it says of it', async () => {
    await serve((stream) =>
      stream.respond(
        {
          ':status': 200,
          'content-type': 'application/grpc',
          'grpc-status': '5',
          'grpc-message': 'no %22x%22',
        },
        { endStream: true },
      ),
    )
    const { status: ending } = await call(open())
    expect(ending).toEqual({ code: status.NOT_FOUND, details: 'no "x"', isAnswer: true })
  })

  it.each([
    ['is compressed', () => frame('one', 1), {}],
    ['cannot be decoded', () => frame('one'), { fails: true }],
  ])('ends as internal where a message %s', async (_, bytes, options) => {
    await serve((stream) => reply(stream, [bytes()]))
    const { messages, status: ending } = await call(open(), options)
    expect(ending.code).toBe(status.INTERNAL)
    expect(messages).toEqual([])
  })

  it('is unavailable where nothing listens, and once the channel is closed', async () => {
    const channel = open()
    expect((await call(channel)).status).toMatchObject({
      code: status.UNAVAILABLE,
      details: expect.stringContaining('ENOENT'),
    })
    channel.close()
    expect((await call(channel)).status.code).toBe(status.UNAVAILABLE)
  })

  it('can be cancelled while the server has not greeted yet', async () => {
    const silent = createSocketServer((socket) => socket.on('error', () => {})).listen(socketPath)
    cleanups.push(() => silent.close())
    await once(silent, 'listening')
    const running = call(open())
    running.cancel()
    running.cancel()
    expect((await running).status.code).toBe(status.CANCELLED)
  })

  it('is cancelled in the server too', async () => {
    const reset = new Promise((resolve) => {
      void serve((stream) => {
        stream.once('aborted', () => resolve(stream.rstCode))
        running.cancel()
      })
    })
    const running = call(open())
    expect((await running).status.code).toBe(status.CANCELLED)
    expect(await reset).toBe(8)
  })

  it('ends where the server lets the connection go gracefully, and the next one takes a new connection', async () => {
    const streams: ServerHttp2Stream[] = []
    const sessions = await serve((stream) => {
      streams.push(stream)
      if (sessions.length === 2) return reply(stream, [frame('second')])
      sessions[0]?.goaway(0)
    })
    const channel = open()
    const first = call(channel)
    await expect.poll(() => channel.state, { interval: 1 }).toBe('idle')
    expect((await call(channel)).messages).toEqual(['second'])
    const [held] = streams
    if (held !== undefined) reply(held, [frame('first')])
    expect((await first).messages).toEqual(['first'])
  })

  it('is unavailable where the connection breaks, and did not come over the wire', async () => {
    const sessions = await serve(() => sessions[0]?.destroy())
    const { status: ending } = await call(open())
    expect(ending).toMatchObject({ code: status.UNAVAILABLE, isAnswer: false })
  })

  it('carries messages that are larger than frames and windows, in both directions', async () => {
    const asked: Buffer[] = []
    await serve((stream) => {
      stream.on('data', (bytes: Buffer) => asked.push(bytes))
      stream.once('end', () => reply(stream, [frame('a'.repeat(5_000_000)), frame('b'.repeat(300_000))]))
    })
    const message = Buffer.alloc(3_000_000, 'm')
    const { messages, status: ending } = await call(open(), { message })
    expect(ending.code).toBe(status.OK)
    expect(messages.map((text) => `${text[0]}${text.length}`)).toEqual(['a5000000', 'b300000'])
    expect(Buffer.concat(asked).subarray(5).equals(message)).toBe(true)
  })

  it('keeps to the windows and to the number of calls that the server grants', async () => {
    let [running, most] = [0, 0]
    await serve(
      (stream) => {
        running += 1
        most = Math.max(most, running)
        stream.once('close', () => (running -= 1))
        stream.resume().once('end', () => reply(stream, [frame('done')]))
      },
      { maxConcurrentStreams: 2, initialWindowSize: 1000 },
    )
    const channel = open()
    await call(channel)
    const message = Buffer.alloc(20_000)
    const ended = await Promise.all(Array.from({ length: 9 }, () => call(channel, { message })))
    expect(ended.flatMap(({ messages }) => messages)).toEqual(Array(9).fill('done'))
    expect(most).toBeLessThanOrEqual(2)
  })

  it.each([
    [
      'an answer that is no gRPC',
      (stream) => stream.respond({ ':status': 404 }, { endStream: true }),
      status.UNIMPLEMENTED,
    ],
    ['a reset', (stream) => stream.close(11), status.RESOURCE_EXHAUSTED],
    ['a call that the server refused', (stream) => stream.close(7), status.UNAVAILABLE],
    [
      'an answer without a status',
      (stream) => stream.respond({ ':status': 200 }, { endStream: true }),
      status.UNKNOWN,
    ],
    [
      'a message that is too large',
      (stream) => {
        stream.respond({ ':status': 200 })
        stream.write(Buffer.from([0, 1, 0, 0, 1]))
      },
      status.RESOURCE_EXHAUSTED,
    ],
  ] satisfies [string, (stream: ServerHttp2Stream) => void, number][])(
    'ends with %s, and the next one goes on',
    async (_, answer, code) => {
      let count = 0
      await serve((stream) => {
        count += 1
        if (count === 1) answer(stream)
        else reply(stream, [frame('next')])
      })
      const channel = open()
      expect((await call(channel)).status).toMatchObject({ code, isAnswer: false })
      expect((await call(channel)).messages).toEqual(['next'])
    },
  )

  it('ends as its own server says after messages, which is no answer to it', async () => {
    await serve((stream) => {
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '14', 'grpc-message': 'going' }))
      stream.end(frame('first'))
    })
    const { messages, status: ending } = await call(open())
    expect(messages).toEqual(['first'])
    expect(ending).toEqual({ code: status.UNAVAILABLE, details: 'going', isAnswer: false })
  })

  it('tells of a server that ends its connections without the time, so that it is logged once', async () => {
    const server = createSocketServer((socket) => socket.destroy()).listen(socketPath)
    cleanups.push(() => server.close())
    await once(server, 'listening')
    for (let count = 0; count < 3; count += 1) {
      const { code, details } = (await call(open())).status
      expect(code).toBe(status.UNAVAILABLE)
      expect(details).toMatch(/^No connection established\. Last error: [A-Za-z /2]+$/u)
    }
  })

  it.each([
    ['does not speak HTTP/2', Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n')],
    ['sends a frame that is too large', Buffer.from([1, 0, 0, 4, 0, 0, 0, 0, 0])],
    ['sends data before its settings', Buffer.from([0, 0, 1, 0, 0, 0, 0, 0, 1, 0])],
  ])('is unavailable where the server %s', async (_, bytes) => {
    const server = createSocketServer((socket) => {
      socket.on('error', () => {})
      socket.write(bytes)
    }).listen(socketPath)
    cleanups.push(() => server.close())
    await once(server, 'listening')
    expect((await call(open())).status.code).toBe(status.UNAVAILABLE)
  })
})

describe('the socket of a connection (grpc-js shows it only to the credentials, which an update may change)', () => {
  it('is shown connected before anything is sent, once for each connection, and its end is told', async () => {
    const shown: { readonly isConnected: boolean; readonly sentBytes: number; readonly socket: Socket }[] = []
    let released = 0
    const sessions = await serve((stream) => reply(stream, [frame('done')]))
    const keep = (socket: Socket) => {
      shown.push({ isConnected: !socket.connecting, sentBytes: socket.bytesWritten, socket })
      return () => void (released += 1)
    }
    const channel = open({ keep })
    expect((await call(channel)).messages).toEqual(['done'])
    expect((await call(channel)).messages).toEqual(['done'])
    expect(shown).toMatchObject([{ isConnected: true, sentBytes: 0 }])
    expect(shown[0]?.socket.bytesWritten).toBeGreaterThan(0)
    sessions[0]?.destroy()
    await expect.poll(() => released).toBe(1)
    expect((await call(channel)).messages).toEqual(['done'])
    expect(shown).toHaveLength(2)
    channel.close()
    await expect.poll(() => released).toBe(2)
  })

  it('is closed with the channel, also while the server has not greeted', async () => {
    const closed = Promise.withResolvers<void>()
    const accepted = Promise.withResolvers<void>()
    const silent = createSocketServer((socket) => {
      socket.on('error', () => {}).on('close', () => closed.resolve())
      socket.resume()
      accepted.resolve()
    }).listen(socketPath)
    cleanups.push(() => silent.close())
    await once(silent, 'listening')
    const channel = open()
    const running = call(channel)
    await accepted.promise
    channel.close()
    expect((await running).status).toMatchObject({ code: status.UNAVAILABLE, isAnswer: false })
    await closed.promise
  })

  it('is closed with the channel under a call in flight, which ends as unavailable', async () => {
    const begun = Promise.withResolvers<void>()
    const sessions = await serve(() => begun.resolve())
    const channel = open()
    const running = call(channel)
    await begun.promise
    channel.close()
    expect((await running).status).toMatchObject({ code: status.UNAVAILABLE, isAnswer: false })
    await expect.poll(() => sessions[0]?.destroyed).toBe(true)
  })
})
