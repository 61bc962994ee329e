import { createServer } from 'node:net'

const own = new Set<string>()

/**
 * Claims a subnet for this process until it ends. Returns false where another process has claimed it. The bridge, which
 * shows others that a subnet is taken, exists only from the first pod on. An abstract socket leaves nothing behind and
 * belongs to a network namespace, as subnets do.
 */
export function claimSubnet(subnet: string): Promise<boolean> {
  if (own.has(subnet)) return Promise.resolve(true)
  return new Promise((resolve) => {
    const server = createServer((socket) => socket.destroy())
    server.unref()
    server.once('error', () => resolve(false))
    server.listen(`\0podd/subnet/${subnet}`, () => {
      own.add(subnet)
      resolve(true)
    })
  })
}
