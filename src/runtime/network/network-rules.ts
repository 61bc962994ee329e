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

/** The rules of the table `nat` that sandboxes need, by the sandbox's id; shared ones under ''. */
export type SandboxRules = ReadonlyMap<string, readonly string[]>

/**
 * Reads the rules that the CNI plugins made for this network from the output of iptables-save: masquerading and host
 * ports, with each container's own chains, and the shared rules.
 */
export function readSandboxRules(saved: string, networkName: string): SandboxRules {
  const rules = tableOf(saved, 'nat')?.rules ?? []
  const found = new Map<string, string[]>()
  const add = (id: string, more: readonly string[]): void => {
    found.set(id, [...(found.get(id) ?? []), ...more])
  }
  const ofChains = Map.groupBy(rules, chainOf)
  for (const rule of rules) {
    const id = sandboxOf(rule, networkName)
    if (id === undefined) {
      if (isShared(rule)) add('', [rule])
      continue
    }
    const chain = jumpTarget(rule) ?? ''
    const own = containerChain.test(chain) ? (ofChains.get(chain) ?? []) : []
    add(id, [...own, rule])
  }
  return found
}

/** The plugins' comment: `name: "podd" id: "0123…"`. */
export function sandboxOf(rule: string, networkName: string): string | undefined {
  const named = `name: \\"${networkName}\\" id: \\"`
  const start = rule.indexOf(named)
  if (start < 0) return undefined
  return /^[0-9a-f]+/u.exec(rule.slice(start + named.length))?.[0]
}

/** The shared rules: the jumps to the shared chains, and the rules of these chains. */
function isShared(rule: string): boolean {
  if (rule.includes(' id: \\"')) return false
  const isOwn = containerChain.test(chainOf(rule))
  return !isOwn && (sharedChains.includes(chainOf(rule)) || sharedChains.includes(jumpTarget(rule) ?? ''))
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
 * The rules of the running pods: remembered while they exist, and restored when something else removed them, such as a
 * reload of a firewall.
 */
export class NetworkRules {
  readonly #places: ContainerdPlaces
  readonly #known = new Map<Firewall, SandboxRules>()
  /** Whether a sandbox was ready at the last check. */
  #hasReady = false

  constructor(places: ContainerdPlaces) {
    this.#places = places
  }

  /**
   * Restores missing rules. While none are missing this takes one program and one list for each address family; while
   * no sandbox is ready it takes none, except for the first time after some were.
   *
   * @param podCidrs the pods' subnets
   * @param listReady the ids of the sandboxes that are ready; called again before anything is restored, as a sandbox
   * that is being stopped loses its rules rightly
   * @param results libcni's cached results, from which rules that were lost before any check are derived
   * @returns the restored rules
   */
  async check(
    podCidrs: readonly string[],
    listReady: () => Promise<ReadonlySet<string>>,
    results: readonly CniResult[],
  ): Promise<readonly string[]> {
    const repaired: string[] = []
    if (!this.#hasReady && (await listReady()).size === 0) return repaired
    let isAnyReady = false
    const closed: Firewall[] = []
    for (const firewall of selectFirewalls(podCidrs)) {
      const save = findExecutable(`${firewall}-save`)
      const restore = findExecutable(`${firewall}-restore`)
      if (save === undefined || restore === undefined) continue
      const look = () => this.#look(firewall, save, podCidrs, listReady, results)
      let found = await look()
      // The output may date from the middle of a plugin's change: a rule has to be missing twice.
      if (found !== undefined && found.script !== '') found = (await look()) ?? found
      if (found === undefined) continue
      isAnyReady ||= found.ready.size > 0
      if (!found.isOpen) closed.push(firewall)
      if (found.script === '') continue
      await commandOutput(restore, ['--noflush', '-w', lockSeconds], { input: found.script })
      repaired.push(...found.script.split('\n').filter((line) => line.startsWith('-A ')))
      // As iptables prints them, so that they are recognised from now on.
      const after = await runCommand(save, [])
      if (after.exitCode === 0) this.#remember(firewall, after.stdout, found.ready)
    }
    this.#hasReady = isAnyReady
    // Last: there are filter tables, made by nft, that iptables can't change.
    for (const firewall of closed)
      if (await ensureForwardRules(this.#places, firewall)) repaired.push(`${firewall} FORWARD`)
    return repaired
  }

  /** The missing rules; undefined where the firewall can't be read. */
  async #look(
    firewall: Firewall,
    save: string,
    podCidrs: readonly string[],
    listReady: () => Promise<ReadonlySet<string>>,
    results: readonly CniResult[],
  ): Promise<
    { readonly ready: ReadonlySet<string>; readonly isOpen: boolean; readonly script: string } | undefined
  > {
    // All tables at once: a program for each costs more than the additional output.
    const { exitCode, stdout } = await runCommand(save, [])
    if (exitCode !== 0) return undefined
    const ready = await listReady()
    const lost = ready.size === 0 ? [] : this.#missingMasquerade(firewall, stdout, podCidrs)
    const wanted = [...this.#rulesOfSandboxes(firewall, stdout, ready, results), ...lost]
    return { ready, isOpen: hasForwardRules(stdout, this.#places), script: planRepair(stdout, wanted) }
  }

  /** The rules in `nat` that sandboxes had or should have, with the shared ones where some need them. */
  #rulesOfSandboxes(
    firewall: Firewall,
    saved: string,
    ready: ReadonlySet<string>,
    results: readonly CniResult[],
  ): readonly string[] {
    const known = this.#remember(firewall, saved, ready)
    const shared = known.get('') ?? []
    const own = [...known].flatMap(([id, rules]) => (id === '' ? [] : rules))
    const derived = results
      .filter(
        ({ networkName, sandboxId }) => networkName === this.#places.networkName && ready.has(sandboxId),
      )
      .flatMap((result) =>
        deriveSandboxRules(result, firewall, [...(known.get(result.sandboxId) ?? []), ...shared]),
      )
    // A derived chain replaces whatever remains of it.
    const rewritten = new Set(
      derived.map((rule) => chainOf(rule)).filter((chain) => containerChain.test(chain)),
    )
    const kept = own.filter((rule) => !rewritten.has(chainOf(rule)))
    const needsShared = own.some((rule) => sharedChains.includes(chainOf(rule)))
    return [...kept, ...derived, ...(needsShared ? shared : [])]
  }

  #missingMasquerade(firewall: Firewall, saved: string, podCidrs: readonly string[]): readonly string[] {
    return missingMasquerade(tableOf(saved, 'nat')?.rules ?? [], this.#places, firewall, podCidrs)
  }

  /** The rules read replace the known ones, unless some are missing; sandboxes that are gone are forgotten. */
  #remember(firewall: Firewall, saved: string, ready: ReadonlySet<string>): SandboxRules {
    const present = readSandboxRules(saved, this.#places.networkName)
    const before = this.#known.get(firewall) ?? new Map<string, readonly string[]>()
    const known = new Map<string, readonly string[]>()
    for (const id of new Set(['', ...ready])) {
      const now = present.get(id) ?? []
      const then = before.get(id) ?? []
      const rules = then.every((rule) => now.includes(rule)) ? now : then
      if (rules.length > 0) known.set(id, rules)
    }
    this.#known.set(firewall, known)
    return known
  }
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
 * have made them of libcni's cached results: for rules that were lost before podd has read them. Empty where every port
 * has its rules; `forward-rules.ts` has those that masquerade all pods. `known` holds its own rules and the shared
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
  const ports = result.portMappings.filter(({ hostIp }) => hostIp === '' || hostIp.includes(':') === isIpv6)
  if (ports.length === 0) return []
  const chains = sandboxChains(result.networkName, result.sandboxId)
  const place = { result, address, isIpv6, chains }
  // `fillDnatRules` of `plugins/meta/portmap/portmap.go`.
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
