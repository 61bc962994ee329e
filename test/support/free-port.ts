import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/**
 * A TCP port that nobody on the host listens on: below those that the kernel gives to others meanwhile
 * (`net.ipv4.ip_local_port_range` begins with 32768).
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(10_000, 32_000)
    if (await isFree(port)) return port
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, () => server.close(() => resolve(true)))
  })
}
