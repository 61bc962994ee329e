import { describe, expect, it } from 'vitest'
import type { CniResult, PortMapping } from '../../../src/runtime/network/cni-results.ts'
import { deriveSandboxRules, sandboxChains } from '../../../src/runtime/network/network-rules.ts'

const { hostPorts } = sandboxChains('podd', 'ab12')

function portOf(more: Partial<PortMapping> = {}): PortMapping {
  return { hostPort: 80, containerPort: 8080, protocol: 'tcp', hostIp: '', ...more }
}

function resultOf(more: Partial<CniResult> = {}): CniResult {
  return {
    path: '/var/lib/cni/results/x',
    sandboxId: 'ab12',
    networkName: 'podd',
    hostInterfaces: ['podd0', 'veth1'],
    namespaces: ['/run/netns/cni-1'],
    macs: new Map(),
    gateways: ['10.86.0.1/24'],
    addresses: ['10.86.0.5/24', 'fd00:86::5/64'],
    portMappings: [portOf()],
    ...more,
  }
}

const dnatName = '"dnat name: \\"podd\\" id: \\"ab12\\""'
const shared = [
  'PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT',
  'OUTPUT -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT',
  'POSTROUTING -m comment --comment "CNI portfwd requiring masquerade" -j CNI-HOSTPORT-MASQ',
  'CNI-HOSTPORT-MASQ -m mark --mark 0x2000/0x2000 -j MASQUERADE',
  'CNI-HOSTPORT-SETMARK -m comment --comment "CNI portfwd masquerade mark" -j MARK --set-xmark 0x2000/0x2000',
]
const ipv4 = {
  hostPorts: [
    `${hostPorts} -s 10.86.0.5/24 -p tcp -m tcp --dport 80 -j CNI-HOSTPORT-SETMARK`,
    `${hostPorts} -s 127.0.0.1/32 -p tcp -m tcp --dport 80 -j CNI-HOSTPORT-SETMARK`,
    `${hostPorts} -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.86.0.5:8080`,
    `CNI-HOSTPORT-DNAT -p tcp -m comment --comment ${dnatName} -m multiport --dports 80 -j ${hostPorts}`,
  ],
}
const whole = [...ipv4.hostPorts, ...shared]

describe('deriveSandboxRules', () => {
  it('makes what the plugins made, where nothing is left of it', () => {
    expect(deriveSandboxRules(resultOf(), 'iptables', [])).toEqual(whole)
  })

  it('makes it for IPv6 as well', () => {
    expect(deriveSandboxRules(resultOf(), 'ip6tables', shared)).toEqual([
      `${hostPorts} -s fd00:86::5/64 -p tcp -m tcp --dport 80 -j CNI-HOSTPORT-SETMARK`,
      `${hostPorts} -p tcp -m tcp --dport 80 -j DNAT --to-destination [fd00:86::5]:8080`,
      `CNI-HOSTPORT-DNAT -p tcp -m comment --comment ${dnatName} -m multiport --dports 80 -j ${hostPorts}`,
    ])
  })

  it.each<[string, readonly string[], readonly string[]]>([
    ['nothing is missing', whole, []],
    [
      'the chain of the host ports is empty',
      whole.filter((rule) => !rule.startsWith(hostPorts)),
      ipv4.hostPorts,
    ],
    [
      'what the pod sends to its own port is not masqueraded',
      whole.filter((rule) => !(rule.startsWith(hostPorts) && rule.endsWith('SETMARK'))),
      ipv4.hostPorts,
    ],
    ['nothing leads to the host ports', whole.filter((rule) => !rule.includes('multiport')), ipv4.hostPorts],
    ...shared.map((lost): [string, readonly string[], readonly string[]] => [
      `the shared rule of ${lost.split(' ')[0] ?? ''} is gone: ${lost.split(' -j ')[1] ?? ''}`,
      whole.filter((rule) => rule !== lost),
      [lost],
    ]),
  ])('makes what is missing alone where %s', (_, known, expected) => {
    expect(deriveSandboxRules(resultOf(), 'iptables', known)).toEqual(expected)
  })

  it.each<[string, readonly PortMapping[], readonly string[]]>([
    ['no port', [], []],
    [
      'an address of the host',
      [portOf({ hostIp: '192.0.2.1' })],
      [
        `${hostPorts} -s 10.86.0.5/24 -d 192.0.2.1/32 -p tcp -m tcp --dport 80 -j CNI-HOSTPORT-SETMARK`,
        `${hostPorts} -s 127.0.0.1/32 -d 192.0.2.1/32 -p tcp -m tcp --dport 80 -j CNI-HOSTPORT-SETMARK`,
        `${hostPorts} -d 192.0.2.1/32 -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.86.0.5:8080`,
        ipv4.hostPorts[3] ?? '',
      ],
    ],
    ['any address of the host', [portOf({ hostIp: '0.0.0.0' })], ipv4.hostPorts],
    ['an address of the other family', [portOf({ hostIp: '::1' })], []],
  ])('serves %s', (_, portMappings, expected) => {
    expect(deriveSandboxRules(resultOf({ portMappings }), 'iptables', shared)).toEqual(expected)
  })

  it('leads to the ports of each protocol, 15 with a rule', () => {
    const tcp = Array.from({ length: 16 }, (_, at) => portOf({ hostPort: 8000 + at }))
    const portMappings = [...tcp, portOf({ protocol: 'udp', hostPort: 53 })]
    const rules = deriveSandboxRules(resultOf({ portMappings }), 'iptables', shared)
    const entries = rules.filter((rule) => rule.startsWith('CNI-HOSTPORT-DNAT '))
    const ports = entries.map((rule) => / -p (\w+) .* --dports (\S+) /u.exec(rule)?.slice(1, 3))
    const first = tcp.slice(0, 15).map(({ hostPort }) => hostPort)
    expect(ports).toEqual([
      ['tcp', first.join(',')],
      ['tcp', '8015'],
      ['udp', '53'],
    ])
    expect(rules.filter((rule) => rule.includes('-j DNAT'))).toHaveLength(17)
  })

  it('has none for a family in which the sandbox has no address', () => {
    expect(deriveSandboxRules(resultOf({ addresses: ['10.86.0.5/24'] }), 'ip6tables', [])).toEqual([])
  })
})
