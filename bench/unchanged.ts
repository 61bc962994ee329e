import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { single } from './figures.ts'
import type { Figure } from './figures.ts'
import type { PoddUnderTest } from './podd-under-test.ts'

const seconds = 15
const etag = '"1"'

/** What an answer costs that nothing has changed: CPU of podd, and bytes in both directions. */
export async function benchUnchanged(podd: PoddUnderTest): Promise<readonly Figure[]> {
  let answers = 0
  const sockets = new Set<Socket>()
  let endedBytes = 0
  const server = createServer((request, response) => {
    answers += 1
    if (request.headers['if-none-match'] === etag) response.writeHead(304, { etag }).end()
    else response.writeHead(200, { etag }).end('apiVersion: v1\nkind: List\nitems: []\n')
  })
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', () => {
      sockets.delete(socket)
      endedBytes += socket.bytesRead + socket.bytesWritten
    })
  })
  const bytes = (): number =>
    [...sockets].reduce((sum, socket) => sum + socket.bytesRead + socket.bytesWritten, endedBytes)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
    await podd.stop()
    await podd.start()
    await sleep(10_000)
    const idleMs = await cpuMs(podd)
    await podd.stop()
    await podd.start({ flags: ['--manifest-url', url, '--http-check-frequency', '100ms'] })
    await sleep(10_000)
    const before = { answers, bytes: bytes() }
    const askingMs = await cpuMs(podd)
    const asked = answers - before.answers
    return [
      single(`CPU of an unchanged answer, of ${asked}`, 'ms', (askingMs - idleMs) / asked),
      single('bytes of an unchanged answer, both ways', 'KiB', (bytes() - before.bytes) / asked / 1024),
    ]
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

async function cpuMs(podd: PoddUnderTest): Promise<number> {
  const before = podd.cpuMs()
  await sleep(seconds * 1000)
  return podd.cpuMs() - before
}
