import type { Socket } from 'node:net'

/** How many connections one address may have whose client is not known yet. */
const mostOfAddress = 256

type Ends = Pick<Socket, 'remoteAddress' | 'remotePort'>

/** Bounds what an unauthenticated host may hold of a listener: connections, handshakes, and heads of requests. */
export class UnknownConnections {
  readonly #ports = new Map<string, Set<number>>()

  /** False where the address has as many as it may. */
  admit(socket: Ends & { once(event: 'close', listener: () => void): unknown }): boolean {
    const { remoteAddress: address = '', remotePort: port = 0 } = socket
    const ports = this.#ports.get(address) ?? new Set()
    if (ports.size >= mostOfAddress) return false
    this.#ports.set(address, ports.add(port))
    socket.once('close', () => this.#remove(address, port))
    return true
  }

  /** The client of a connection is known from now on. */
  know({ remoteAddress, remotePort }: Ends): void {
    if (remoteAddress !== undefined && remotePort !== undefined) this.#remove(remoteAddress, remotePort)
  }

  #remove(address: string, port: number): void {
    const ports = this.#ports.get(address)
    ports?.delete(port)
    if (ports?.size === 0) this.#ports.delete(address)
  }
}
