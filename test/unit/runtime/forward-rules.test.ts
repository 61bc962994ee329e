import { describe, expect, it } from 'vitest'
import { containerdPlaces } from '../../../src/runtime/containerd/process.ts'
import { planRuleRemoval } from '../../../src/runtime/network/forward-rules.ts'

const places = containerdPlaces('/var/lib/podd', '/run/podd')
const mine = 'a'.repeat(64)
const theirs = 'b'.repeat(64)

/** The rules of one container with a host port, as the bridge and portmap plugins write them. */
function containerRules(network: string, id: string, hash: string): readonly string[] {
  const comment = `-m comment --comment "name: \\"${network}\\" id: \\"${id}\\""`
  return [
    `-A POSTROUTING -s 10.86.0.2/32 ${comment} -j CNI-${hash}abc`,
    `-A CNI-DN-${hash} -s 10.86.0.0/24 -p tcp -m tcp --dport 8080 -j CNI-HOSTPORT-SETMARK`,
    `-A CNI-DN-${hash} -p tcp -m tcp --dport 8080 -j DNAT --to-destination 10.86.0.2:80`,
    `-A CNI-HOSTPORT-DNAT -p tcp -m comment --comment "dnat name: \\"${network}\\" id: \\"${id}\\"" -m multiport --dports 8080 -j CNI-DN-${hash}`,
    `-A CNI-${hash}abc -d 10.86.0.0/24 ${comment} -j ACCEPT`,
    `-A CNI-${hash}abc ! -d 224.0.0.0/4 ${comment} -j MASQUERADE`,
  ]
}

const sharedRules = [
  '-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT',
  '-A OUTPUT -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT',
  '-A POSTROUTING -m comment --comment "CNI portfwd requiring masquerade" -j CNI-HOSTPORT-MASQ',
  '-A CNI-HOSTPORT-MASQ -m mark --mark 0x2000/0x2000 -j MASQUERADE',
  '-A CNI-HOSTPORT-SETMARK -m comment --comment "CNI portfwd masquerade mark" -j MARK --set-xmark 0x2000/0x2000',
]

function saved(table: string, rules: readonly string[]): string {
  const chains = new Set(rules.map((rule) => rule.split(' ')[1]))
  const lines = [...chains].map((chain) => `:${chain} - [0:0]`)
  return [`*${table}`, ...lines, ...rules, 'COMMIT', ''].join('\n')
}

const hashOne = '0123456789abcdef01234'
const hashTwo = 'fedcba9876543210fedcb'

describe('planRuleRemoval', () => {
  it('has nothing to do where nothing is ours', () => {
    const text = saved('nat', [...sharedRules, ...containerRules('other', theirs, hashTwo)])
    expect(planRuleRemoval(text, places)).toBe('')
    expect(planRuleRemoval('', places)).toBe('')
  })

  it('takes the shared chains too when we were the last', () => {
    const script = planRuleRemoval(
      saved('nat', [...sharedRules, ...containerRules('podd', mine, hashOne)]),
      places,
    )
    expect(script.split('\n')).toEqual([
      '*nat',
      `-D POSTROUTING -s 10.86.0.2/32 -m comment --comment "name: \\"podd\\" id: \\"${mine}\\"" -j CNI-${hashOne}abc`,
      `-D CNI-HOSTPORT-DNAT -p tcp -m comment --comment "dnat name: \\"podd\\" id: \\"${mine}\\"" -m multiport --dports 8080 -j CNI-DN-${hashOne}`,
      '-D PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT',
      '-D OUTPUT -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT',
      '-D POSTROUTING -m comment --comment "CNI portfwd requiring masquerade" -j CNI-HOSTPORT-MASQ',
      `-F CNI-${hashOne}abc`,
      `-F CNI-DN-${hashOne}`,
      '-F CNI-HOSTPORT-DNAT',
      '-F CNI-HOSTPORT-MASQ',
      '-F CNI-HOSTPORT-SETMARK',
      `-X CNI-${hashOne}abc`,
      `-X CNI-DN-${hashOne}`,
      '-X CNI-HOSTPORT-DNAT',
      '-X CNI-HOSTPORT-MASQ',
      '-X CNI-HOSTPORT-SETMARK',
      'COMMIT',
      '',
    ])
  })

  it.each(['other', 'podd-0123abcd', 'my-podd'])('leaves all of the network %s', (network) => {
    const theirRules = containerRules(network, theirs, hashTwo)
    const script = planRuleRemoval(
      saved('nat', [...sharedRules, ...containerRules('podd', mine, hashOne), ...theirRules]),
      places,
    )
    expect(script).toContain(hashOne)
    expect(script).not.toContain(hashTwo)
    expect(script).not.toContain('-X CNI-HOSTPORT')
  })

  it('leaves the shared chains to a container chain that still jumps there', () => {
    const [, orphan = ''] = containerRules('other', theirs, hashTwo)
    const script = planRuleRemoval(
      saved('nat', [...sharedRules, ...containerRules('podd', mine, hashOne), orphan]),
      places,
    )
    expect(script).not.toContain('-X CNI-HOSTPORT')
  })

  it.each([
    [
      'of another podd, which has no pod with a host port yet',
      '-A POSTROUTING -s 10.86.1.0/24 ! -d 224.0.0.0/4 ! -o podd-01 -m comment --comment "podd-01 pods 10.86.1.0/24" -j MASQUERADE',
    ],
    [
      "of another network, whose containers' chains are there",
      `-A POSTROUTING -s 10.1.0.2/32 -m comment --comment "name: \\"net\\" id: \\"x\\"" -j CNI-${hashTwo}abc`,
    ],
  ])('leaves the shared chains to a plugin that is about to use them: %s', (_what, rule) => {
    const ours = containerRules('podd', mine, hashOne)
    const script = planRuleRemoval(saved('nat', [...sharedRules, ...ours, rule]), places)
    expect(script).toContain(`-X CNI-DN-${hashOne}`)
    expect(script).not.toContain('CNI-HOSTPORT-MASQ')
    expect(script).not.toContain('-X CNI-HOSTPORT')
  })

  it("takes our FORWARD rules and leaves other bridges'", () => {
    const script = planRuleRemoval(
      saved('filter', [
        '-A FORWARD -i podd0 -j ACCEPT',
        '-A FORWARD -o podd0 -m conntrack --ctstate RELATED,ESTABLISHED,DNAT -j ACCEPT',
        '-A FORWARD -i podd-0123abcd -j ACCEPT',
        '-A FORWARD -i docker0 -j ACCEPT',
      ]),
      places,
    )
    expect(script.split('\n')).toEqual([
      '*filter',
      '-D FORWARD -i podd0 -j ACCEPT',
      '-D FORWARD -o podd0 -m conntrack --ctstate RELATED,ESTABLISHED,DNAT -j ACCEPT',
      'COMMIT',
      '',
    ])
  })
  it("takes our masquerading, of subnets that pods had before too, and leaves other bridges'", () => {
    const ours = ['10.86.0.0/24', '10.99.0.0/24'].map(
      (cidr) =>
        `-A POSTROUTING -s ${cidr} ! -d 224.0.0.0/4 ! -o podd0 -m comment --comment "podd0 pods ${cidr}" -j MASQUERADE`,
    )
    const others = [
      '-A POSTROUTING -s 10.86.1.0/24 ! -d 224.0.0.0/4 ! -o podd-01 -m comment --comment "podd-01 pods 10.86.1.0/24" -j MASQUERADE',
      '-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE',
    ]
    const script = planRuleRemoval(saved('nat', [...ours, ...others]), places)
    expect(script.split('\n')).toEqual([
      '*nat',
      ...ours.map((rule) => rule.replace('-A', '-D')),
      'COMMIT',
      '',
    ])
  })
})
