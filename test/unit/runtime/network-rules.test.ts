import { describe, expect, it } from 'vitest'
import { planRepair } from '../../../src/runtime/network/network-rules.ts'

const own = 'CNI-0123456789abcdef01234567'
const port = 'CNI-DN-fedcba9876543210fedcb'
const foreign = 'CNI-aaaaaaaaaaaaaaaaaaaaaaaa'

const shared = [
  'PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT',
  'POSTROUTING -m comment --comment "CNI portfwd requiring masquerade" -j CNI-HOSTPORT-MASQ',
  'CNI-HOSTPORT-MASQ -m mark --mark 0x2000/0x2000 -j MASQUERADE',
]
const masquerade = [
  `${own} -d 10.88.0.0/16 -j ACCEPT`,
  `${own} ! -d 224.0.0.0/4 -j MASQUERADE`,
  `POSTROUTING -s 10.88.0.5/32 -m comment --comment "name: \\"podd\\" id: \\"ab12\\"" -j ${own}`,
]
const hostPort = [
  `${port} -s 10.88.0.5/32 -p tcp -m tcp --dport 80 -j CNI-HOSTPORT-SETMARK`,
  `${port} -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.88.0.5:8080`,
  `CNI-HOSTPORT-DNAT -p tcp -m comment --comment "dnat name: \\"podd\\" id: \\"ab12\\"" -m multiport --dports 80 -j ${port}`,
]
const others = [
  `${foreign} -d 10.99.0.0/16 -j ACCEPT`,
  `POSTROUTING -s 10.99.0.5/32 -m comment --comment "name: \\"podd-2\\" id: \\"cd34\\"" -j ${foreign}`,
  'POSTROUTING -s 172.17.0.0/16 -j MASQUERADE',
]

function saved(chains: readonly string[], rules: readonly string[]): string {
  const lines = [
    ...['PREROUTING', ...chains].map((chain) => `:${chain} - [0:0]`),
    ...rules.map((rule) => `-A ${rule}`),
  ]
  return `# Generated\n*filter\n:FORWARD DROP [0:0]\nCOMMIT\n*nat\n${lines.join('\n')}\nCOMMIT\n`
}

const chains = [own, port, foreign, 'CNI-HOSTPORT-DNAT', 'CNI-HOSTPORT-MASQ']
const all = [...shared, ...masquerade, ...hostPort]

describe('planRepair', () => {
  it('has nothing to do where all is there', () => {
    expect(planRepair(saved(chains, [...others, ...all]), all)).toBe('')
  })

  it('puts back all of it after a flush that left nothing', () => {
    const lines = planRepair(saved([], []), all).trim().split('\n')
    expect(lines[0]).toBe('*nat')
    expect(lines.at(-1)).toBe('COMMIT')
    expect(lines.filter((line) => line.startsWith('-A ')).map((line) => line.slice(3))).toEqual(all)
    const declared = lines.filter((line) => line.startsWith(':')).map((line) => line.slice(1).split(' ')[0])
    expect(new Set(declared)).toEqual(
      new Set([own, port, 'CNI-HOSTPORT-DNAT', 'CNI-HOSTPORT-MASQ', 'CNI-HOSTPORT-SETMARK']),
    )
  })

  it('writes a container’s own chain as a whole, and empties none that others use', () => {
    const left = [...shared, ...hostPort.slice(1), ...masquerade, ...others]
    expect(planRepair(saved([...chains, 'CNI-HOSTPORT-SETMARK'], left), all)).toBe(
      ['*nat', `:${port} - [0:0]`, `-A ${hostPort[0]}`, `-A ${hostPort[1]}`, 'COMMIT', ''].join('\n'),
    )
  })
})
