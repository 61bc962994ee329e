/* The host's addresses and ports: the node's own address, and whether a port is free. */
import { once } from 'node:events'
import { createServer } from 'node:net'
import { networkInterfaces } from 'node:os'
import type { NetworkInterfaceInfo } from 'node:os'
import { errorMessage } from '../base/errors.ts'
import { readTextIfThere } from '../base/read-bounded.ts'

type Interfaces = Readonly<Record<string, readonly NetworkInterfaceInfo[] | undefined>>

/**
 * The host's own address, as pods and `podd get pods -o wide` show it: that of the default route's interface, or else
 * any other than loopback; 127.0.0.1 on a host without a network. It may change: read it again.
 */
export function readNodeAddress(routesPath = '/proc/net/route'): string {
  // A host without IPv4 routes has no such file.
  return selectNodeAddress(networkInterfaces(), parseDefaultInterface(readTextIfThere(routesPath) ?? ''))
}

export function selectNodeAddress(interfaces: Interfaces, defaultInterface: string | undefined): string {
  const preferred = defaultInterface === undefined ? [] : (interfaces[defaultInterface] ?? [])
  const all = [...preferred, ...Object.values(interfaces).flatMap((addresses) => addresses ?? [])]
  const usable = all.filter(({ internal, address }) => !internal && !address.startsWith('fe80:'))
  const chosen = usable.find(({ family }) => family === 'IPv4') ?? usable[0]
  return chosen?.address ?? '127.0.0.1'
}

/** The interface of the default route with the lowest metric in /proc/net/route. */
export function parseDefaultInterface(text: string): string | undefined {
  const routes = text
    .split('\n')
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .filter(([, destination, , , , , , mask]) => destination === '00000000' && mask === '00000000')
  return routes.sort((a, b) => Number(a[6]) - Number(b[6]))[0]?.[0]
}

/** Why a program can't listen at this address; undefined where it can. Listens there for a moment. */
export async function listenProblem(address: {
  readonly host: string
  readonly port: number
}): Promise<string | undefined> {
  const server = createServer((socket) => socket.destroy())
  const listening = once(server, 'listening')
  server.listen({ host: address.host, port: address.port })
  try {
    await listening
  } catch (error) {
    return errorMessage(error)
  }
  server.close()
  await once(server, 'close')
  return undefined
}
