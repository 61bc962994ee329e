import type { Socket } from 'node:net'

/** The most connections of one address whose client is not identified yet. */
const mostOfAddress = 256

type Ends = Pick<Socket, 'remoteAddress' | 'remotePort'>

/** Bounds what an unauthenticated host may hold of a listener: connections, handshakes, and heads of requests. */
export class UnknownConnections {
  readonly #ports = new Map<string, Set<number>>()

  /** Counts a connection. Returns false where the address has reached its limit. */
  admit(socket: Ends & { once(event: 'close', listener: () => void): unknown }): boolean {
    const { remoteAddress: address = '', remotePort: port = 0 } = socket
    const ports = this.#ports.get(address) ?? new Set()
    if (ports.size >= mostOfAddress) return false
    this.#ports.set(address, ports.add(port))
    socket.once('close', () => this.#remove(address, port))
    return true
  }

  /** Releases a connection whose client was identified. */
  know({ remoteAddress, remotePort }: Ends): void {
    if (remoteAddress !== undefined && remotePort !== undefined) this.#remove(remoteAddress, remotePort)
  }

  #remove(address: string, port: number): void {
    const ports = this.#ports.get(address)
    ports?.delete(port)
    if (ports?.size === 0) this.#ports.delete(address)
  }
}
