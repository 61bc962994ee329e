import { createHash } from 'node:crypto'
import type { Logger } from '../../base/logger.ts'
import { findExecutable, commandOutput, runCommand } from '../../host/run-command.ts'
import type { ContainerdPlaces } from '../containerd/process.ts'
import type { CniResult, PortMapping } from './cni-results.ts'
import {
  chainOf,
  containerChain,
  ensureForwardRules,
  ensureMasquerade,
  hasForwardRules,
  jumpTarget,
  lockSeconds,
  missingMasquerade,
  selectFirewalls,
  sharedChains,
  tableOf,
} from './forward-rules.ts'
import type { Firewall } from './forward-rules.ts'

/** The plugins' comment: `name: "podd" id: "0123…"`. */
export function sandboxOf(rule: string, networkName: string): string | undefined {
  const named = `name: \\"${networkName}\\" id: \\"`
  const start = rule.indexOf(named)
  if (start < 0) return undefined
  return /^[0-9a-f]+/u.exec(rule.slice(start + named.length))?.[0]
}

/**
 * The input of iptables-restore (with --noflush) that restores missing rules; empty where none are missing. A
 * container's own chain is rewritten as a whole, which keeps its order.
 */
export function planRepair(saved: string, wanted: readonly string[]): string {
  const nat = tableOf(saved, 'nat')
  const present = new Set(nat?.rules ?? [])
  const missing = [...new Set(wanted)].filter((rule) => !present.has(rule))
  if (missing.length === 0) return ''
  const chains = new Set(nat?.chains ?? [])
  const rewritten = new Set(
    missing.map((rule) => chainOf(rule)).filter((chain) => containerChain.test(chain)),
  )
  const named = wanted.flatMap((rule) => [chainOf(rule), jumpTarget(rule) ?? ''])
  // Declaring a chain empties it: shared chains are declared only where they are missing.
  const made = new Set([...rewritten, ...named.filter((chain) => isPluginChain(chain) && !chains.has(chain))])
  const rules = [...new Set(wanted)].filter((rule) => !present.has(rule) || rewritten.has(chainOf(rule)))
  return [
    '*nat',
    ...[...made].map((chain) => `:${chain} - [0:0]`),
    ...rules.map((rule) => `-A ${rule}`),
    'COMMIT',
    '',
  ].join('\n')
}

function isPluginChain(chain: string): boolean {
  return containerChain.test(chain) || sharedChains.includes(chain)
}

/**
 * Restores the rules of the pods' network that something else removed, such as a reload of a firewall. While none are missing
 * this takes one program for each address family.
 *
 * @param podCidrs the pods' subnets
 * @param listReady the ids of the sandboxes that are ready, which are listed after the rules: a sandbox that is being stopped
 * loses its own rightly
 * @param results libcni's cached results, which say what rules a sandbox has
 * @returns the restored rules
 */
export async function restoreNetworkRules(
  places: ContainerdPlaces,
  podCidrs: readonly string[],
  listReady: () => Promise<ReadonlySet<string>>,
  results: readonly CniResult[],
): Promise<readonly string[]> {
  const restored: string[] = []
  const closed: Firewall[] = []
  for (const firewall of selectFirewalls(podCidrs)) {
    const save = findExecutable(`${firewall}-save`)
    const restore = findExecutable(`${firewall}-restore`)
    if (save === undefined || restore === undefined) continue
    const look = async () => {
      // All tables at once: a program for each costs more than the additional output.
      const { exitCode, stdout } = await runCommand(save, [])
      if (exitCode !== 0) return undefined
      const ready = await listReady()
      const ofReady = results.filter(({ sandboxId }) => ready.has(sandboxId))
      const present = tableOf(stdout, 'nat')?.rules ?? []
      const wanted = [
        ...ofReady.flatMap((result) => deriveSandboxRules(result, firewall, present)),
        ...missingMasquerade(present, places, firewall, podCidrs),
      ]
      return { isOpen: hasForwardRules(stdout, places), script: planRepair(stdout, wanted) }
    }
    let found = await look()
    // The output may date from the middle of a plugin's change: a rule has to be missing twice.
    if (found !== undefined && found.script !== '') found = (await look()) ?? found
    if (found === undefined) continue
    if (!found.isOpen) closed.push(firewall)
    if (found.script === '') continue
    await commandOutput(restore, ['--noflush', '-w', lockSeconds], { input: found.script })
    restored.push(...found.script.split('\n').filter((line) => line.startsWith('-A ')))
  }
  // Last: there are filter tables, made by nft, that iptables can't change.
  for (const firewall of closed)
    if (await ensureForwardRules(places, firewall)) restored.push(`${firewall} FORWARD`)
  return restored
}

/** Adds the rules for the traffic of pods. Pods may work without them, so a failure is only logged. */
export async function openFirewall(
  places: ContainerdPlaces,
  podCidrs: readonly string[],
  logger: Logger,
): Promise<void> {
  for (const firewall of selectFirewalls(podCidrs)) {
    // One after the other: both wait for the same lock.
    for (const ensure of [ensureMasquerade, ensureForwardRules]) {
      try {
        await ensure(places, firewall, podCidrs)
      } catch (error) {
        logger.warn({ err: error }, 'cannot add firewall rules for the traffic of pods')
      }
    }
  }
}

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
const maxPortsInRule = 15

const markValue = '0x2000/0x2000'

/** `plugins/meta/portmap/portmap.go`, containernetworking/plugins 1.x. */
const sharedRules: readonly string[] = [
  'PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT',
  'OUTPUT -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT',
  'POSTROUTING -m comment --comment "CNI portfwd requiring masquerade" -j CNI-HOSTPORT-MASQ',
  `CNI-HOSTPORT-MASQ -m mark --mark ${markValue} -j MASQUERADE`,
  `CNI-HOSTPORT-SETMARK -m comment --comment "CNI portfwd masquerade mark" -j MARK --set-xmark ${markValue}`,
]

/**
 * The rules of the table `nat` that a ready sandbox needs and that are not among `known`, as the portmap plugin would
 * have made them of libcni's cached results. Empty where every port has its rules; `forward-rules.ts` has those that
 * masquerade all pods. `known` holds what iptables-save prints, without `-A`. The chain of a sandbox is returned as a whole.
 */
export function deriveSandboxRules(
  result: CniResult,
  firewall: Firewall,
  known: readonly string[],
): readonly string[] {
  const isIpv6 = firewall === 'ip6tables'
  const address = result.addresses.find((each) => each.includes(':') === isIpv6)
  if (address === undefined) return []
  const ports = result.portMappings.filter(({ hostIp }) => hostIp === '' || hostIp.includes(':') === isIpv6)
  if (ports.length === 0) return []
  const chains = sandboxChains(result.networkName, result.sandboxId)
  const place = { result, address, isIpv6, chains }
  // `fillDnatRules` of `plugins/meta/portmap/portmap.go`.
  const chain = chains.hostPorts
  const isServed = ({ protocol, hostPort }: PortMapping): boolean =>
    ['DNAT', 'CNI-HOSTPORT-SETMARK'].every((target) =>
      has(
        known,
        chain,
        (rule) =>
          jumpTarget(rule) === target &&
          rule.includes(` -p ${protocol} `) &&
          rule.includes(` --dport ${hostPort} `),
      ),
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

interface Place {
  readonly result: CniResult
  /** With its prefix. */
  readonly address: string
  readonly isIpv6: boolean
  readonly chains: SandboxChains
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
  const host = place.address.split('/')[0] ?? ''
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
function entries({ result, chains }: Place): readonly string[] {
  // The plugins' comment, as iptables-save prints it.
  const comment = `"dnat name: \\"${result.networkName}\\" id: \\"${result.sandboxId}\\""`
  return [...Map.groupBy(result.portMappings, ({ protocol }) => protocol)].flatMap(([protocol, group]) => {
    const numbers = [...new Set(group.map(({ hostPort }) => hostPort))]
    const parts = Array.from({ length: Math.ceil(numbers.length / maxPortsInRule) }, (_, at) =>
      numbers.slice(at * maxPortsInRule, (at + 1) * maxPortsInRule),
    )
    return parts.map(
      (part) =>
        `CNI-HOSTPORT-DNAT -p ${protocol} -m comment --comment ${comment} -m multiport --dports ${part.join(',')} -j ${chains.hostPorts}`,
    )
  })
}

function has(known: readonly string[], chain: string, isIt: (rule: string) => boolean): boolean {
  return known.some((rule) => chainOf(rule) === chain && isIt(rule))
}
