import { once } from 'node:events'
import { createServer } from 'node:http'
import type { Server } from 'node:http'
import { Socket } from 'node:net'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { forwardPort, joinContainer } from '../../../src/runtime/streaming.ts'
import { SpdySession } from '../../../src/runtime/spdy-session.ts'
import type { SpdyStream } from '../../../src/runtime/spdy-session.ts'

/** A runtime's server of streams: it serves a connection once all of its streams are open. */
class StreamingServer {
  protocol = ''
  url = ''
  readonly #server: Server

  constructor(
    names: readonly string[],
    serve: (streams: Readonly<Record<string, SpdyStream>>, cut: () => void) => void,
  ) {
    this.#server = createServer()
    this.#server.on('upgrade', (request, socket) => {
      this.protocol = String(request.headers['x-stream-protocol-version'])
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n')
      const streams: Record<string, SpdyStream> = {}
      const session = new SpdySession(socket, (stream) => {
        streams[stream.headers['streamtype'] ?? ''] = stream
        if (names.every((name) => streams[name] !== undefined))
          serve(streams, () => socket instanceof Socket && socket.resetAndDestroy())
      })
      void session.closed.then(() => socket.destroy())
    })
  }

  async listen(): Promise<void> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/exec/token`
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

let server: StreamingServer | undefined
beforeEach(() => (server = undefined))
afterEach(() => server?.close())

async function serve(...args: ConstructorParameters<typeof StreamingServer>): Promise<string> {
  server = new StreamingServer(...args)
  await server.listen()
  return server.url
}

async function textOf(stream: AsyncIterable<unknown>): Promise<string> {
  let text = ''
  for await (const chunk of stream) text += String(chunk)
  return text
}

/** Of a client that stays. */
const stays = new AbortController().signal
const choices = { stdin: false, terminal: false }

it('gives the output and the exit code of a command', async () => {
  const url = await serve(['error', 'stdin', 'stdout', 'stderr'], ({ error, stdin, stdout, stderr }) => {
    stderr?.end('words')
    stdin?.on('end', () => {
      stdout?.end()
      const details = { causes: [{ reason: 'ExitCode', message: '7' }] }
      error?.end(JSON.stringify({ status: 'Failure', reason: 'NonZeroExitCode', details }))
    })
    stdin?.on('data', (chunk: Buffer) => stdout?.write(chunk))
  })
  const command = await joinContainer(url, { ...choices, stdin: true }, 'EXEC_FAILED', stays)
  await command.write(Buffer.from('said'))
  await command.closeStdin()
  const { stderr = command.stdout } = command
  expect(await Promise.all([textOf(command.stdout), textOf(stderr), command.ended])).toEqual([
    'said',
    'words',
    7,
  ])
  expect(server?.protocol).toBe('v4.channel.k8s.io')
})

it('tells the size of a terminal before anything else is typed', async () => {
  const url = await serve(['error', 'stdin', 'stdout', 'resize'], ({ error, stdout, resize }) => {
    resize?.once('data', (size: Buffer) => {
      stdout?.end(size)
      error?.end('{"status":"Success"}')
    })
  })
  const size = { columns: 97, rows: 31 }
  const command = await joinContainer(url, { stdin: true, terminal: true, size }, 'EXEC_FAILED', stays)
  expect(command.stderr).toBeUndefined()
  expect(await textOf(command.stdout)).toBe('{"Width":97,"Height":31}\n')
  expect(await command.ended).toBe(0)
})

it.each([
  ['the connection breaks', (_: SpdyStream | undefined, cut: () => void) => cut()],
  ['the report is empty', (error: SpdyStream | undefined) => error?.end()],
])('takes no command for ended well where %s', async (_, end) => {
  const url = await serve(['error', 'stdout', 'stderr'], ({ error }, cut) => {
    end(error, cut)
  })
  const command = await joinContainer(url, choices, 'EXEC_FAILED', stays)
  await expect(command.ended).rejects.toMatchObject({ code: 'EXEC_FAILED' })
})

it('tells how a command ended where the runtime closes while input is still sent', async () => {
  let end = (): void => {}
  const url = await serve(['error', 'stdin', 'stdout', 'stderr'], ({ error, stdout }, cut) => {
    end = () => {
      stdout?.end('taken')
      error?.end('{"status":"Success"}')
      cut()
    }
    stdout?.write('all ')
  })
  const command = await joinContainer(url, { ...choices, stdin: true }, 'EXEC_FAILED', stays)
  const said = textOf(command.stdout)
  await once(command.stdout, 'readable')
  end()
  // In the same turn: nothing of the report has been read.
  void command.write(Buffer.alloc(100_000))
  expect(await Promise.all([said, command.ended])).toEqual(['all taken', 0])
})

it('says what the runtime says of a container that it can’t attach to', async () => {
  const url = await serve(['error', 'stdout', 'stderr'], ({ error }) => {
    error?.end(JSON.stringify({ status: 'Failure', message: 'it is gone' }))
  })
  const attached = await joinContainer(url, choices, 'ATTACH_FAILED', stays)
  await expect(attached.ended).rejects.toMatchObject({ code: 'ATTACH_FAILED', message: 'it is gone' })
})

it('carries the bytes of a forwarded connection both ways, and the end of each', async () => {
  const url = await serve(['error', 'data'], ({ error, data }) => {
    expect(data?.headers).toEqual({ streamtype: 'data', port: '80', requestid: '0' })
    error?.end()
    data?.on('data', (chunk: Buffer) => data.write(chunk))
    data?.on('end', () => data.end('over'))
  })
  const connection = await forwardPort(url, 80, stays)
  connection.end('hello ')
  expect(await textOf(connection)).toBe('hello over')
  expect(server?.protocol).toBe('portforward.k8s.io')
})

it('ends a forwarded connection that the runtime could not make with the runtime’s reason', async () => {
  const url = await serve(['error', 'data'], ({ error, data }) => {
    error?.end('connection refused')
    data?.end()
  })
  const connection = await forwardPort(url, 80, stays)
  await once(connection, 'close').catch(() => undefined)
  expect(connection.errored).toMatchObject({ code: 'PORT_FORWARD_FAILED', message: 'connection refused' })
})

it('says which answer the runtime gives where it serves no streams', async () => {
  const plain = createServer((_request, response) => response.writeHead(404).end())
  plain.listen(0, '127.0.0.1')
  await once(plain, 'listening')
  const url = `http://127.0.0.1:${(plain.address() as AddressInfo).port}/exec/old`
  const failed = { code: 'EXEC_FAILED', message: "the runtime's streams: the answer was 404" }
  await expect(joinContainer(url, choices, 'EXEC_FAILED', stays)).rejects.toMatchObject(failed)
  plain.closeAllConnections()
  plain.close()
})

it('gives up a runtime that does not answer once the client is gone, and asks nothing for one that was gone before', async () => {
  const silent = createServer()
  const asked = once(silent, 'upgrade')
  let connections = 0
  silent.on('connection', () => (connections += 1))
  silent.listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/portforward/token`
  const client = new AbortController()
  const forwarded = forwardPort(url, 80, client.signal)
  const refused = forwarded.catch((error: unknown) => error)
  const [, socket] = (await asked) as [unknown, Duplex]
  const left = once(socket.resume(), 'end')
  client.abort(new Error('the client left'))
  expect(await refused).toMatchObject({
    code: 'PORT_FORWARD_FAILED',
    message: "the runtime's streams: the client left",
  })
  await left
  socket.destroy()
  await expect(joinContainer(url, choices, 'EXEC_FAILED', client.signal)).rejects.toMatchObject({
    code: 'EXEC_FAILED',
  })
  expect(connections).toBe(1)
  silent.close()
})

it('leaves a connection that has begun to whoever has it when the signal is aborted', async () => {
  const url = await serve(['error', 'data'], ({ error, data }) => {
    error?.end()
    data?.on('data', (chunk: Buffer) => data.write(chunk))
    data?.on('end', () => data.end())
  })
  const client = new AbortController()
  const connection = await forwardPort(url, 80, client.signal)
  client.abort()
  connection.end('hello')
  expect(await textOf(connection)).toBe('hello')
})
