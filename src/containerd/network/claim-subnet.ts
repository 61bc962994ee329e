import { createServer } from 'node:net'

const own = new Set<string>()

/**
 * Whether no other process has claimed this subnet; from then on it is this process's, until it ends. The bridge, which
 * shows others that a subnet is taken, is there with the first pod only. An abstract socket leaves nothing behind
 * and belongs to a network namespace, as subnets do.
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
