import { createServer } from 'node:net'
import type { Server } from 'node:net'

/** The answer of org.freedesktop.DBus.Properties.Get to call 1: a variant that holds a text. */
export function propertyReply(value: string): Buffer {
  const fields = Buffer.concat([
    Buffer.from('\u0005\u0001u\0\u0001\0\0\0'),
    Buffer.from('\u0008\u0001g\0\u0001v\0\0'),
  ])
  const length = Buffer.alloc(4)
  length.writeUInt32LE(value.length)
  const body = Buffer.concat([Buffer.from('\u0001s\0\0'), length, Buffer.from(`${value}\0`)])
  const head = Buffer.alloc(16)
  head.write('l\u0002\0\u0001')
  head.writeUInt32LE(body.length, 4)
  head.writeUInt32LE(7, 8)
  // The last field's padding is not counted.
  head.writeUInt32LE(fields.length - 1, 12)
  return Buffer.concat([head, fields, body])
}

/** systemd at its private socket, which tells its state and knows nothing else. */
export class FakeSystemd {
  state: 'running' | 'stopping' = 'running'
  readonly #server: Server

  constructor(path: string) {
    this.#server = createServer((socket) => {
      let isLoggedIn = false
      socket.on('error', () => undefined)
      socket.on('data', () => {
        socket.write(isLoggedIn ? propertyReply(this.state) : 'OK 00112233\r\n')
        isLoggedIn = true
      })
    }).listen(path)
  }

  async close(): Promise<void> {
    await new Promise((resolve) => this.#server.close(resolve))
  }
}
