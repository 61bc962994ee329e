import { createHash } from 'node:crypto'
import type { CniResult, PortMapping } from './cni-results.ts'
import { chainOf, jumpTarget } from './forward-rules.ts'
import type { Firewall } from './firewall.ts'

/** The names of a sandbox's chains (`plugins/pkg/utils/utils.go`). */
export interface SandboxChains {
  /** The chain of the bridge plugin's `ipMasq`, which pods of earlier podd versions have. */
  readonly masquerade: string
  readonly hostPorts: string
}

export function sandboxChains(networkName: string, id: string): SandboxChains {
  const hash = createHash('sha512').update(`${networkName}${id}`).digest('hex')
  return { masquerade: `CNI-${hash}`.slice(0, 28), hostPorts: `CNI-DN-${hash}`.slice(0, 28) }
}

/** The most ports that one match may name (`-m multiport`). */
const mostPortsInRule = 15

const markValue = '0x2000/0x2000'

/**
 * The rules that all sandboxes with host ports share (`plugins/meta/portmap/portmap.go`, containernetworking/plugins
 * 1.x).
 */
const sharedRules: readonly string[] = [
  'PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT',
  'OUTPUT -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT',
  'POSTROUTING -m comment --comment "CNI portfwd requiring masquerade" -j CNI-HOSTPORT-MASQ',
  `CNI-HOSTPORT-MASQ -m mark --mark ${markValue} -j MASQUERADE`,
  `CNI-HOSTPORT-SETMARK -m comment --comment "CNI portfwd masquerade mark" -j MARK --set-xmark ${markValue}`,
]

/**
 * The rules of the table `nat` that a ready sandbox needs and that are not among `known`, as the portmap plugin would
 * have made them of libcni's cached results: for rules that were lost before podd has read them. Empty where every port
 * has its rules; `masquerade-rules.ts` has those that masquerade all pods. `known` holds its own rules and the shared
 * ones, as iptables-save prints them, without `-A`. The chain of a sandbox is returned as a whole.
 */
export function deriveSandboxRules(
  result: CniResult,
  firewall: Firewall,
  known: readonly string[],
): readonly string[] {
  const isIpv6 = firewall === 'ip6tables'
  const address = result.addresses.find((each) => each.includes(':') === isIpv6)
  if (address === undefined) return []
  const place: Place = {
    result,
    address,
    isIpv6,
    chains: sandboxChains(result.networkName, result.sandboxId),
  }
  return deriveHostPorts(place, known)
}

interface Place {
  readonly result: CniResult
  /** With its prefix. */
  readonly address: string
  readonly isIpv6: boolean
  readonly chains: SandboxChains
}

/** `fillDnatRules` of `plugins/meta/portmap/portmap.go`. */
function deriveHostPorts(place: Place, known: readonly string[]): readonly string[] {
  const { result, isIpv6, chains } = place
  const ports = result.portMappings.filter(({ hostIp }) => hostIp === '' || hostIp.includes(':') === isIpv6)
  if (ports.length === 0) return []
  const chain = chains.hostPorts
  const isServed = ({ protocol, hostPort }: PortMapping): boolean =>
    has(
      known,
      chain,
      (rule) =>
        jumpTarget(rule) === 'DNAT' &&
        rule.includes(` -p ${protocol} `) &&
        rule.includes(` --dport ${hostPort} `),
    ) &&
    has(known, 'CNI-HOSTPORT-DNAT', (rule) => jumpTarget(rule) === chain && rule.includes(` -p ${protocol} `))
  const own = ports.every(isServed)
    ? []
    : [...ports.flatMap((port) => rulesOfPort(port, place)), ...entries(place)]
  const lackingShared = sharedRules.filter(
    (rule) => !has(known, chainOf(rule), (each) => jumpTarget(each) === jumpTarget(rule)),
  )
  return [...own, ...lackingShared]
}

/** The order matters: packets to be masqueraded are marked before their destination is changed. */
function rulesOfPort(
  { protocol, hostPort, hostIp, containerPort }: PortMapping,
  place: Place,
): readonly string[] {
  const { address, isIpv6, chains } = place
  const isAny = hostIp === '' || hostIp === '0.0.0.0' || hostIp === '::'
  const destination = isAny ? '' : ` -d ${hostIp}${isIpv6 ? '/128' : '/32'}`
  const match = `-p ${protocol} -m ${protocol} --dport ${hostPort}`
  const host = hostOf(place)
  const target = `${isIpv6 ? `[${host}]` : host}:${containerPort}`
  const rule = (source: string, jump: string): string =>
    `${chains.hostPorts}${source}${destination} ${match} -j ${jump}`
  return [
    rule(` -s ${address}`, 'CNI-HOSTPORT-SETMARK'),
    ...(isIpv6 ? [] : [rule(' -s 127.0.0.1/32', 'CNI-HOSTPORT-SETMARK')]),
    rule('', `DNAT --to-destination ${target}`),
  ]
}

/** The rules that lead to the sandbox's own chain; also for ports of the other family, as in the plugin. */
function entries(place: Place): readonly string[] {
  return [...Map.groupBy(place.result.portMappings, ({ protocol }) => protocol)].flatMap(
    ([protocol, group]) => {
      const numbers = [...new Set(group.map(({ hostPort }) => hostPort))]
      const parts = Array.from({ length: Math.ceil(numbers.length / mostPortsInRule) }, (_, at) =>
        numbers.slice(at * mostPortsInRule, (at + 1) * mostPortsInRule),
      )
      return parts.map(
        (part) =>
          `CNI-HOSTPORT-DNAT -p ${protocol} -m comment --comment ${quoteName('dnat ', place)} -m multiport --dports ${part.join(',')} -j ${place.chains.hostPorts}`,
      )
    },
  )
}

function hostOf({ address }: Place): string {
  return address.split('/')[0] ?? ''
}

/** The plugins' comment, as iptables-save prints it. */
function quoteName(prefix: string, { result }: Place): string {
  return `"${prefix}name: \\"${result.networkName}\\" id: \\"${result.sandboxId}\\""`
}

function has(known: readonly string[], chain: string, isIt: (rule: string) => boolean): boolean {
  return known.some((rule) => chainOf(rule) === chain && isIt(rule))
}
