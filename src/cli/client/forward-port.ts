import { createServer } from 'node:net'
import type { AddressInfo, Server, Socket } from 'node:net'
import { errorCode } from '../../base/errors.ts'
import { joinStreams } from '../../base/http.ts'
import type { ForwardedConnection } from './tunnel.ts'

export interface PortListener {
  readonly port: number
  close(): void
}

/**
 * Listens at one local address and joins each connection with one that `open` gives. Rejects where it can't listen.
 * @param port 0 for any free one
 */
export function listenAt(
  place: { readonly host: string; readonly port: number },
  open: () => Promise<ForwardedConnection>,
  onConnection: (problem: unknown) => void,
): Promise<PortListener> {
  const sockets = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    socket.on('error', () => {})
    open().then(
      ({ data, problem }) => {
        onConnection(undefined)
        void problem.then((found) => {
          if (found !== undefined) onConnection(found)
        })
        socket.resume()
        return joinStreams(socket, data)
      },
      (error: unknown) => {
        socket.destroy()
        onConnection(error)
      },
    )
  })
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(place, () => {
      resolve({
        port: portOf(server),
        close() {
          server.close()
          for (const socket of sockets) socket.destroy()
        },
      })
    })
  })
}

function isInternet(address: AddressInfo | string | null): address is AddressInfo {
  return typeof address === 'object' && address !== null
}

function portOf(server: Server): number {
  const address = server.address()
  return isInternet(address) ? address.port : 0
}

/** A host without IPv6 has no ::1. */
export function isMissingAddress(error: unknown): boolean {
  return ['EADDRNOTAVAIL', 'EAFNOSUPPORT'].includes(errorCode(error) ?? '')
}
