/* The host's addresses and ports: the node's own address, when the addresses change, and whether a port is free. */
import { once } from 'node:events'
import { closeSync, openSync, readSync } from 'node:fs'
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

/**
 * The addresses of each family and the routes of IPv4, of the reader's network namespace. A lost carrier changes none
 * of them.
 */
const files = ['/proc/net/fib_trie', '/proc/net/route', '/proc/net/if_inet6']
/** Some 400 interfaces. A router's table of a million routes is not compared. */
const maxBytes = 32 * 1024

/**
 * Caches a value computed from the host's interfaces for as long as the kernel shows the same addresses, but for
 * link-local ones, and the same routes: listing all interfaces takes 1.5 ms of CPU with fifty pods, reading these files a
 * tenth of it. Errors of `compute` are thrown and not cached. `isFresh` computes in any case.
 */
export function untilAddressesChange<T>(
  compute: () => T,
  readFiles: () => string | undefined = addressFiles(),
): (options?: { readonly isFresh: boolean }) => T {
  let known: { readonly text: string; readonly value: T } | undefined
  return ({ isFresh } = { isFresh: false }) => {
    // Read before computing, so that a change meanwhile is found the next time.
    const text = readFiles()
    if (!isFresh && known !== undefined && known.text === text) return known.value
    known = undefined
    const value = compute()
    if (text !== undefined) known = { text, value }
    return value
  }
}

/** Reads them as one text; undefined where that is too large to be worth comparing. */
function addressFiles(): () => string | undefined {
  const buffer = Buffer.allocUnsafeSlow(maxBytes)
  return () => {
    let length = 0
    for (const file of files) length = appendFile(file, buffer, length)
    return length === maxBytes ? undefined : withoutLinkLocal(buffer.toString('latin1', 0, length))
  }
}

/**
 * Without the link-local addresses of /proc/net/if_inet6: each pod's link has one, and none is an address of the node.
 */
export function withoutLinkLocal(text: string): string {
  return text.replaceAll(/^fe80.*\n/gm, '')
}

/** Gives where the text ends. A kernel without IPv6, say, has no such file. */
function appendFile(file: string, buffer: Buffer, start: number): number {
  let fd: number
  try {
    fd = openSync(file, 'r')
  } catch {
    // A file that is missing stays so: what the others list still shows each change.
    return start
  }
  try {
    let end = start
    for (;;) {
      const count = readSync(fd, buffer, end, maxBytes - end, null)
      if (count === 0) return end
      end += count
    }
  } finally {
    closeSync(fd)
  }
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
