import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'

/** A TCP port that nobody on the host listens on. */
export function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })
}
