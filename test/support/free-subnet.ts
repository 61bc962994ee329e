import { randomBytes } from 'node:crypto'
import { readHostNetwork, networksOverlap, parseIpv4Cidr } from '../../src/runtime/network/pod-network.ts'

/** A /24 that no route of the host goes into; of so many that two tests at a time get different ones. */
export function freeSubnet(): string {
  const routed = readHostNetwork().routes.filter(({ network }) => network.prefix > 0)
  const [first = 0, second = 0] = randomBytes(2)
  for (let step = 0; step < 65_536; step += 1) {
    const subnet = `10.${100 + ((first + (step >> 8)) % 100)}.${(second + step) % 256}.0/24`
    const parsed = parseIpv4Cidr(subnet)
    if (parsed !== undefined && routed.every(({ network }) => !networksOverlap(network, parsed)))
      return subnet
  }
  throw new Error('no free subnet')
}

/** A /64 of a unique local network (RFC 4193). */
export function freeSubnet6(): string {
  return `fd7c:2d5a:${randomBytes(2).toString('hex').replace(/^0+/u, '') || '1'}::/64`
}
