import { describe, expect, it } from 'vitest'
import { containerdPlaces } from '../../../src/runtime/containerd/process.ts'
import { missingMasquerade } from '../../../src/runtime/network/forward-rules.ts'

const places = containerdPlaces('/var/lib/podd', '/run/podd')
const podCidrs = ['10.86.0.0/24', 'FD00:86:0:0::/64']
const ipv4 =
  'POSTROUTING -s 10.86.0.0/24 ! -d 224.0.0.0/4 ! -o podd0 -m comment --comment "podd0 pods 10.86.0.0/24" -j MASQUERADE'

describe('missingMasquerade', () => {
  it('gives each family a rule that spares what stays on the bridge, and multicast', () => {
    expect(missingMasquerade([], places, 'iptables', podCidrs)).toEqual([ipv4])
    expect(missingMasquerade([], places, 'ip6tables', podCidrs)).toEqual([
      'POSTROUTING -s FD00:86:0:0::/64 ! -d ff00::/8 ! -o podd0 -m comment --comment "podd0 pods FD00:86:0:0::/64" -j MASQUERADE',
    ])
  })

  it('knows a rule however iptables prints its subnet', () => {
    const printed =
      'POSTROUTING -s fd00:86::/64 ! -d ff00::/8 ! -o podd0 -m comment --comment "podd0 pods FD00:86:0:0::/64" -j MASQUERADE'
    expect(missingMasquerade([printed], places, 'ip6tables', podCidrs)).toEqual([])
  })

  it.each([
    ['another podd', ipv4.replaceAll('podd0', 'podd-0123abcd')],
    ['a subnet of before', ipv4.replaceAll('10.86.0.', '10.87.0.')],
    ['another chain', ipv4.replace('POSTROUTING', 'MINE')],
    ['what somebody made of it', ipv4.replace('MASQUERADE', 'ACCEPT')],
  ])('does not take the rule of %s for it', (_, rule) => {
    expect(missingMasquerade([rule], places, 'iptables', podCidrs)).toEqual([ipv4])
  })
})
