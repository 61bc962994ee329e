import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http2'
import type { Http2Server, ServerHttp2Session, ServerHttp2Stream } from 'node:http2'
import { createServer as createSocketServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { status } from '@grpc/grpc-js'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { GrpcChannel } from '../../../src/streams/grpc-channel.ts'
import type { GrpcStatus } from '../../../src/streams/grpc-channel.ts'

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

async function serve(answer: (stream: ServerHttp2Stream) => void): Promise<ServerHttp2Session[]> {
  const server: Http2Server = createServer()
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

function open(): GrpcChannel {
  const channel = new GrpcChannel({ socketPath, clock: systemClock })
  cleanups.push(() => channel.close())
  return channel
}

interface Ended {
  readonly messages: readonly string[]
  readonly status: GrpcStatus
}

function call(
  channel: GrpcChannel,
  options: { readonly fails?: boolean } = {},
): Promise<Ended> & {
  cancel(): void
} {
  const messages: string[] = []
  let cancel = (): void => {}
  const ended = new Promise<Ended>((resolve) => {
    cancel = channel.call({
      path: '/a.B/C',
      message: Buffer.from('asked'),
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
    expect(ending).toMatchObject({ code: status.NOT_FOUND, details: 'no "x"' })
    expect(ending.metadata.get('content-type')).toEqual(['application/grpc'])
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
    while (channel.state !== 'idle') await systemClock.sleep(1)
    expect((await call(channel)).messages).toEqual(['second'])
    const [held] = streams
    if (held !== undefined) reply(held, [frame('first')])
    expect((await first).messages).toEqual(['first'])
  })

  it('is unavailable where the connection breaks, and did not come over the wire', async () => {
    const sessions = await serve(() => sessions[0]?.destroy())
    const { status: ending } = await call(open())
    expect(ending.code).toBe(status.UNAVAILABLE)
    expect(ending.metadata.get('content-type')).toEqual([])
  })
})
