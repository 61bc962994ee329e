import { createServer } from 'node:net'
import type { Server } from 'node:net'

/** The answer of org.freedesktop.DBus.Properties.Get to call 1: a variant that holds a text, or a job's number and path. */
function propertyReply(type: 's' | '(uo)', value: string): Buffer {
  const fields = Buffer.concat([
    Buffer.from('\u0005\u0001u\0\u0001\0\0\0'),
    Buffer.from('\u0008\u0001g\0\u0001v\0\0'),
  ])
  const length = Buffer.alloc(4)
  length.writeUInt32LE(value.length)
  // The number is 0 without a job; podd goes by the path.
  const before = type === 's' ? '\u0001s\0\0' : '\u0004(uo)\0\0\0\0\0\0\0'
  const body = Buffer.concat([Buffer.from(before), length, Buffer.from(`${value}\0`)])
  const head = Buffer.alloc(16)
  head.write('l\u0002\0\u0001')
  head.writeUInt32LE(body.length, 4)
  head.writeUInt32LE(7, 8)
  // The last field's padding is not counted.
  head.writeUInt32LE(fields.length - 1, 12)
  return Buffer.concat([head, fields, body])
}

/** systemd at its private socket, which tells its state and what is queued of shutdown.target, and knows nothing else. */
export class FakeSystemd {
  /** In a shutdown it says `stopping` only if the boot had finished. */
  state: 'starting' | 'running' | 'degraded' | 'stopping' = 'running'
  shutdownJob: 'start' | 'stop' | undefined
  readonly #server: Server

  constructor(path: string) {
    this.#server = createServer((socket) => {
      let isLoggedIn = false
      socket.on('error', () => undefined)
      socket.on('data', (data) => {
        socket.write(isLoggedIn ? this.#answer(data.toString('latin1')) : 'OK 00112233\r\n')
        isLoggedIn = true
      })
    }).listen(path)
  }

  #answer(call: string): Buffer {
    const job = '/org/freedesktop/systemd1/job/1234'
    if (call.includes(job) && call.includes('JobType')) return propertyReply('s', this.shutdownJob ?? '')
    if (call.includes('/unit/shutdown_2etarget') && call.includes('systemd1.Unit'))
      return propertyReply('(uo)', this.shutdownJob === undefined ? '/' : job)
    return propertyReply('s', this.state)
  }

  async close(): Promise<void> {
    await new Promise((resolve) => this.#server.close(resolve))
  }
}
