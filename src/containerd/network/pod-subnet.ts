import { isIPv4 } from 'node:net'

/** An IPv4 network as numbers: `base` has its host bits cleared. */
export interface Ipv4Network {
  readonly base: number
  readonly prefix: number
}

/**
 * The candidates for subnets of pods, 256 of 254 addresses each: 10.86.0.0/16 first, for neither Docker, podman, CRI-O,
 * k3s nor kubeadm uses it by default; then a corner of 172.16.0.0/12 for hosts whose own network covers all of
 * 10.0.0.0/8.
 */
const prefixes: readonly string[] = ['10.86', '172.30']

/**
 * The candidates that overlap none of `used` (the host's routes and addresses), the best one first.
 *
 * @param start where to begin among the 256, so that several podds on a host seldom want the same one
 */
export function selectPodSubnets(used: readonly Ipv4Network[], start: number): readonly string[] {
  const candidates = prefixes.flatMap((prefix) =>
    Array.from({ length: 256 }, (_, index) => `${prefix}.${(start + index) % 256}.0/24`),
  )
  return candidates.filter((cidr) => {
    const candidate = parseIpv4Cidr(cidr)
    return candidate !== undefined && used.every((network) => !networksOverlap(candidate, network))
  })
}

/** `10.86.0.0/24` to numbers; undefined for anything else. */
export function parseIpv4Cidr(text: string): Ipv4Network | undefined {
  const [address, prefixText = '', ...rest] = text.split('/')
  if (address === undefined || !isIPv4(address) || !/^\d{1,2}$/.test(prefixText) || rest.length > 0)
    return undefined
  const prefix = Number(prefixText)
  if (prefix > 32) return undefined
  const value = address.split('.').reduce((total, part) => total * 256 + Number(part), 0)
  return { base: clearHostBits(value, prefix), prefix }
}

export function networksOverlap(a: Ipv4Network, b: Ipv4Network): boolean {
  const prefix = Math.min(a.prefix, b.prefix)
  return clearHostBits(a.base, prefix) === clearHostBits(b.base, prefix)
}

/** A line of /proc/net/route. */
export interface HostRoute {
  readonly device: string
  readonly network: Ipv4Network
}

/** Reads /proc/net/route: the main table's IPv4 routes. Source: net/ipv4/fib_trie.c, `fib_route_seq_show`. */
export function parseRoutes(text: string): readonly HostRoute[] {
  return text
    .split('\n')
    .slice(1)
    .flatMap((line) => {
      const [device, destination, , , , , , mask] = line.trim().split(/\s+/)
      if (device === undefined || destination === undefined || mask === undefined) return []
      const prefix = swapBytes(mask).toString(2).replaceAll('0', '').length
      return [{ device, network: { base: swapBytes(destination), prefix } }]
    })
}

function clearHostBits(value: number, prefix: number): number {
  const size = 2 ** (32 - prefix)
  return Math.floor(value / size) * size
}

/** The kernel prints addresses as numbers in its own byte order; all that Node runs on here is little-endian. */
function swapBytes(hex: string): number {
  return Buffer.from(hex.padStart(8, '0'), 'hex').readUInt32LE(0)
}
