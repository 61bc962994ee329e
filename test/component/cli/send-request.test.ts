import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import type { Server, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { ApiClient } from '../../../src/cli/client/client.ts'
import { systemClock } from '../../../src/base/clock.ts'

let directory: string
let server: Server
let client: ApiClient
/** What the daemon was asked. */
let asked: string
let answerWith: (socket: Socket) => void

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'podd-request-'))
  client = new ApiClient(join(directory, 'podd.sock'), systemClock)
  asked = ''
  server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', (bytes) => {
      asked = bytes.toString()
      answerWith(socket)
    })
  })
  server.listen(client.socketPath)
  await once(server, 'listening')
})
afterEach(() => {
  server.close()
  rmSync(directory, { recursive: true, force: true })
})

const never = new AbortController().signal
const head = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'

it('asks over a connection of its own', async () => {
  answerWith = (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntrue')
  expect(await client.get('/healthz?x=1', never)).toBe(true)
  expect(asked).toBe('GET /healthz?x=1 HTTP/1.1\r\nHost: podd\r\nConnection: close\r\n\r\n')
  expect(await client.patch('/x', { a: '\u{E9}' }, never)).toBe(true)
  expect(asked).toBe(
    'PATCH /x HTTP/1.1\r\nHost: podd\r\nContent-Type: application/strategic-merge-patch+json\r\nContent-Length: 10\r\nConnection: close\r\n\r\n{"a":"\u{E9}"}',
  )
  expect(await client.post('/y', never)).toBe(true)
  expect(asked).toContain('\r\nContent-Length: 0\r\n')
})

it.each(['/a b', '/x\r\nX: 1', '/\u{E9}', ''])('sends no path that HTTP cannot carry: %j', async (path) => {
  answerWith = (socket) => socket.end(head)
  await expect(client.get(path, never)).rejects.toThrow('no path of a request')
  expect(asked).toBe('')
})

it.each<[what: string, answer: (socket: Socket) => void]>([
  ['nothing', (socket) => socket.end()],
  ['half a head', (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Le')],
  ['half a body', (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[1,2]')],
  ['half of an error', (socket) => socket.end('HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\n{}')],
  ['something else', (socket) => socket.end('SSH-2.0-OpenSSH\r\n\r\n')],
  ['half a chunk', (socket) => void socket.write(`${head}2\r\n[1`, () => socket.destroy())],
])('knows that a connection broke which gave %s', async (_, answer) => {
  answerWith = answer
  await expect(client.get('/x', never)).rejects.toMatchObject({ code: 'DAEMON_GONE' })
})

it('does not read on while nobody takes what has come', async () => {
  const block = Buffer.alloc(64 * 1024, 97)
  let sent = 0
  let isStuck = false
  answerWith = (socket) => {
    socket.write(head)
    const more = (): void => {
      if (sent === 400) return void socket.end('0\r\n\r\n')
      sent += 1
      socket.write('10000\r\n')
      socket.write(block)
      if (socket.write('\r\n')) setImmediate(more)
      else {
        isStuck = true
        socket.once('drain', () => {
          isStuck = false
          more()
        })
      }
    }
    more()
  }
  const chunks = client.stream('/x', never)
  let read = (await chunks.next()).value?.length ?? 0
  await expect.poll(() => isStuck).toBe(true)
  expect(sent).toBeLessThan(400)
  for await (const chunk of chunks) read += chunk.length
  expect(read).toBe(400 * block.length)
})

it('lets a stream go when its reader leaves, or is interrupted', async () => {
  let isClosed = false
  answerWith = (socket) => {
    socket.once('close', () => (isClosed = true))
    socket.write(`${head}2\r\nok\r\n`)
  }
  for await (const chunk of client.stream('/x', never)) {
    expect(chunk.toString()).toBe('ok')
    break
  }
  await expect.poll(() => isClosed).toBe(true)
  isClosed = false
  const interrupt = new AbortController()
  for await (const _ of client.stream('/x', interrupt.signal)) interrupt.abort()
  await expect.poll(() => isClosed).toBe(true)
  await expect(client.get('/x', interrupt.signal)).rejects.toMatchObject({ code: 'INTERRUPTED' })
})

it('says so where the answer is none of podd', async () => {
  answerWith = (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>')
  const error = {
    code: 'ANSWER_UNREADABLE',
    message: `the answer from ${client.socketPath} is not podd's`,
  }
  await expect(client.get('/healthz', never)).rejects.toMatchObject(error)
  answerWith = (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n<html>\n')
  await expect(client.watch('/watch', never).next()).rejects.toMatchObject(error)
})

it.each(['[]', '{}', 'null', '7'])('takes %s for no list of podd', async (text) => {
  answerWith = (socket) => socket.end(`HTTP/1.1 200 OK\r\nContent-Length: ${text.length}\r\n\r\n${text}`)
  await expect(client.getList('/api/v1/pods', never)).rejects.toMatchObject({ code: 'ANSWER_UNREADABLE' })
})
