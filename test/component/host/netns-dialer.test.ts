import { once } from 'node:events'
import { createServer } from 'node:net'
import type { AddressInfo, Server, Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { NetnsDialers } from '../../../src/host/netns-dialer.ts'

const isRoot = process.getuid?.() === 0
/** Going into a network namespace needs root, also into one's own. */
const own = `/proc/${process.pid}/ns/net`

describe.skipIf(!isRoot)('connections from inside a network namespace', () => {
  let server: Server
  let dialers: NetnsDialers
  beforeEach(async () => {
    dialers = new NetnsDialers(systemClock)
    server = createServer({ allowHalfOpen: true }, (socket) => {
      socket.on('error', () => {})
      socket.write('welcome\n')
      let said = ''
      socket.on('data', (chunk: Buffer) => (said += chunk.toString()))
      socket.on('end', () => socket.end(`you said ${said}`))
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
  })
  afterEach(() => {
    dialers.close()
    server.close()
  })
  const port = () => (server.address() as AddressInfo).port

  it('lose nothing of what a server says first, and end each way by itself', async () => {
    const sockets = await Promise.all([dialers.dial(own, port()), dialers.dial(own, port())])
    expect(await Promise.all(sockets.map((socket) => converse(socket)))).toEqual([
      'welcome\nyou said hello',
      'welcome\nyou said hello',
    ])
  })

  it('go on when the process that made them has ended', async () => {
    const socket = await dialers.dial(own, port())
    dialers.close()
    await systemClock.sleep(50)
    expect(await converse(socket)).toBe('welcome\nyou said hello')
  })

  it('are refused where nobody listens, and fail where there is no namespace', async () => {
    const closed = createServer().listen(0, '127.0.0.1')
    await once(closed, 'listening')
    const { port: free } = closed.address() as AddressInfo
    closed.close()
    await expect(dialers.dial(own, free)).rejects.toMatchObject({ code: 'PORT_REFUSED' })
    await expect(dialers.dial('/proc/0/ns/net', free)).rejects.toMatchObject({
      code: 'PORT_FORWARD_FAILED',
      message: expect.stringContaining('/proc/0/ns/net'),
    })
  })
})

async function converse(socket: Socket): Promise<string> {
  const chunks: Buffer[] = []
  socket.end('hello')
  for await (const chunk of socket) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}
