import { findExecutable, commandOutput, runCommand } from '../../host/run-command.ts'
import type { ContainerdPlaces } from '../containerd/process.ts'

/** By which the rules of an instance's network are known. */
export type NetworkNames = Pick<ContainerdPlaces, 'networkName' | 'bridgeName'>

/**
 * Lets the pods' traffic through a firewall that drops what is forwarded (Docker sets FORWARD's policy to DROP):
 * everything that pods send, and of what is sent to them the replies and host-port traffic. Existing rules are left as
 * they are.
 *
 * @returns whether a rule was missing
 */
export async function ensureForwardRules(places: ContainerdPlaces, firewall: Firewall): Promise<boolean> {
  const program = findExecutable(firewall)
  if (program === undefined) return false
  const rules = await commandOutput(program, ['-w', lockSeconds, '-S', 'FORWARD'])
  const missing = forwardRules(places).filter((rule) => !rules.includes(rule.join(' ')))
  for (const rule of missing) await commandOutput(program, ['-w', lockSeconds, '-I', 'FORWARD', ...rule])
  return missing.length > 0
}

/** Whether what iptables-save printed has the rules of `ensureForwardRules`. */
export function hasForwardRules(saved: string, places: ContainerdPlaces): boolean {
  const present = new Set(tableOf(saved, 'filter')?.rules)
  return forwardRules(places).every((rule) => present.has(`FORWARD ${rule.join(' ')}`))
}

/** In the form and order in which iptables prints them. */
function forwardRules(places: NetworkNames): readonly (readonly string[])[] {
  const { bridgeName } = places
  return [
    ['-o', bridgeName, '-m', 'conntrack', '--ctstate', 'RELATED,ESTABLISHED,DNAT', '-j', 'ACCEPT'],
    ['-i', bridgeName, '-j', 'ACCEPT'],
  ]
}

/** How often the removal of rules is retried if the rules have changed meanwhile. */
const removalTries = 5

/** Removes every rule and chain of this instance's network, and the CNI plugins' shared chains once no network of theirs is left. */
export async function removeNetworkRules(places: NetworkNames): Promise<void> {
  for (const family of ['iptables', 'ip6tables']) {
    const save = findExecutable(`${family}-save`)
    const restore = findExecutable(`${family}-restore`)
    if (save === undefined || restore === undefined) continue
    for (let tries = 1; ; tries += 1) {
      const saved = await runCommand(save, [])
      // A kernel without IPv6 tables has none of our rules either.
      if (saved.exitCode !== 0) break
      const script = planRuleRemoval(saved.stdout, places)
      if (script === '') break
      try {
        await commandOutput(restore, ['--noflush', '-w', lockSeconds], { input: script })
        break
      } catch (error) {
        // Another network may have begun to use the shared chains since the read: then nothing was changed.
        if (tries === removalTries) throw error
      }
    }
  }
}

interface Table {
  readonly name: string
  readonly chains: readonly string[]
  /** Without the leading `-A `. */
  readonly rules: readonly string[]
}

/** Chains that all CNI networks of a host share, of the portmap plugin. */
export const sharedChains: readonly string[] = [
  'CNI-HOSTPORT-DNAT',
  'CNI-HOSTPORT-MASQ',
  'CNI-HOSTPORT-SETMARK',
]

/**
 * From the output of iptables-save, the input of iptables-restore that removes this network's rules; empty when there
 * are none. The plugins mark their rules with the comment `name: "<network>" id: …` and give each container chains of
 * its own (`plugins/pkg/utils`, `plugins/meta/portmap`).
 */
export function planRuleRemoval(saved: string, places: NetworkNames): string {
  return parseTables(saved)
    .map((table) => formatRemoval(table.name, selectRemoval(table, places)))
    .join('')
}

export interface Removal {
  readonly rules: readonly string[]
  readonly chains: readonly string[]
}

function selectRemoval(table: Table, places: NetworkNames): Removal {
  const named = `name: \\"${places.networkName}\\" id: `
  const forward = new Set(forwardRules(places).map((rule) => `FORWARD ${rule.join(' ')}`))
  const rules = table.rules.filter(
    (rule) => rule.includes(named) || forward.has(rule) || isMasquerade(rule, places),
  )
  const owned = new Set(
    rules.flatMap((rule) => jumpTarget(rule) ?? []).filter((chain) => containerChain.test(chain)),
  )
  const left = table.rules.filter((rule) => !rules.includes(rule) && !owned.has(chainOf(rule)))
  const shared = rules.length === 0 ? [] : selectUnusedShared(table, left)
  const jumps = left.filter(
    (rule) => shared.includes(jumpTarget(rule) ?? '') && !shared.includes(chainOf(rule)),
  )
  return {
    rules: [...rules.filter((rule) => !owned.has(chainOf(rule))), ...jumps],
    chains: [...owned, ...shared],
  }
}

/** A container's own chain: `CNI-` or `CNI-DN-` and the start of a hash. */
export const containerChain = /^CNI-(?:DN-)?[0-9a-f]{20,}$/

/**
 * The shared chains, if after the removal no container of any network needs them, and the host has no other network of the
 * CNI plugins: one that has may be between making these chains and its first rule in them (`plugins/meta/portmap`, which
 * takes several calls of iptables for that).
 */
function selectUnusedShared(table: Table, left: readonly string[]): readonly string[] {
  const used = left.some(
    (rule) =>
      chainOf(rule) === 'CNI-HOSTPORT-DNAT' ||
      (containerChain.test(chainOf(rule)) && sharedChains.includes(jumpTarget(rule) ?? '')) ||
      rule.includes('name: \\"') ||
      isMasqueradeOfAny(rule),
  )
  return used ? [] : sharedChains.filter((chain) => table.chains.includes(chain))
}

/** The input of iptables-restore (with --noflush); empty where nothing is removed. */
export function formatRemoval(table: string, removal: Removal): string {
  if (removal.rules.length === 0 && removal.chains.length === 0) return ''
  return [
    `*${table}`,
    ...removal.rules.map((rule) => `-D ${rule}`),
    ...removal.chains.map((chain) => `-F ${chain}`),
    ...removal.chains.map((chain) => `-X ${chain}`),
    'COMMIT',
    '',
  ].join('\n')
}

/** The table of this name in what iptables-save prints. */
export function tableOf(saved: string, table: string): Table | undefined {
  return parseTables(saved).find(({ name }) => name === table)
}

/** Reads what iptables-save prints. */
export function parseTables(saved: string): readonly Table[] {
  return saved
    .split(/^\*/m)
    .slice(1)
    .map((text) => {
      const [name = '', ...lines] = text.split('\n')
      return {
        name,
        chains: lines.flatMap((line) => (line.startsWith(':') ? [line.slice(1).split(' ')[0] ?? ''] : [])),
        rules: lines.flatMap((line) => (line.startsWith('-A ') ? [line.slice(3)] : [])),
      }
    })
}

/** The chain that a rule stands in. */
export function chainOf(rule: string): string {
  return rule.split(' ')[0] ?? ''
}

/** The chain or the target that a rule leads to. */
export function jumpTarget(rule: string): string | undefined {
  return / -[jg] (\S+)/.exec(rule)?.[1]
}

/*
 * Pods reach other hosts under the host's own address. One rule for each of the pods' subnets does for all pods what the
 * bridge plugin's `ipMasq` does by a chain for each (`plugins/pkg/ip/ipmasq_linux.go`, containernetworking/plugins 1.x):
 * traffic between pods and multicast keep the pod's address.
 */

/** Of the rules in `nat` that iptables-save prints, without the leading `-A `: one that masquerades this network's pods. */
export function isMasquerade(rule: string, { bridgeName }: NetworkNames): boolean {
  return (
    rule.startsWith('POSTROUTING ') &&
    rule.includes(`"${bridgeName} pods `) &&
    rule.endsWith(' -j MASQUERADE')
  )
}

/** The same of any podd's network: that has its rule before its first pod. */
function isMasqueradeOfAny(rule: string): boolean {
  return /^POSTROUTING .* --comment "podd\S* pods .* -j MASQUERADE$/u.test(rule)
}

/**
 * The rules that are not among those that iptables-save printed of `nat`, in its form, without the leading `-A `.
 * @param podCidrs the pods' subnets, those of the other address family too
 */
export function missingMasquerade(
  rules: readonly string[],
  places: ContainerdPlaces,
  firewall: Firewall,
  podCidrs: readonly string[],
): readonly string[] {
  const present = rules.filter((rule) => isMasquerade(rule, places))
  return podCidrs
    .filter((cidr) => cidr.includes(':') === (firewall === 'ip6tables'))
    .filter((cidr) => !present.some((rule) => rule.includes(commentOf(places, cidr))))
    .map((cidr) => masqueradeRule(places, cidr))
}

/** Adds what is missing. Throws HostCommandError. */
export async function ensureMasquerade(
  places: ContainerdPlaces,
  firewall: Firewall,
  podCidrs: readonly string[],
): Promise<void> {
  const program = findExecutable(firewall)
  const restore = findExecutable(`${firewall}-restore`)
  if (program === undefined || restore === undefined) return
  const listed = await commandOutput(program, ['-w', lockSeconds, '-t', 'nat', '-S', 'POSTROUTING'])
  const rules = listed.split('\n').map((line) => line.replace(/^-A /u, ''))
  const missing = missingMasquerade(rules, places, firewall, podCidrs)
  if (missing.length === 0) return
  const input = ['*nat', ...missing.map((rule) => `-A ${rule}`), 'COMMIT', ''].join('\n')
  await commandOutput(restore, ['--noflush', '-w', lockSeconds], { input })
}

function masqueradeRule(places: ContainerdPlaces, cidr: string): string {
  const multicast = cidr.includes(':') ? 'ff00::/8' : '224.0.0.0/4'
  const comment = `-m comment --comment ${commentOf(places, cidr)}`
  return `POSTROUTING -s ${cidr} ! -d ${multicast} ! -o ${places.bridgeName} ${comment} -j MASQUERADE`
}

/** The comment that identifies a rule, however iptables prints its subnet; always quoted, for its blank. */
function commentOf({ bridgeName }: ContainerdPlaces, cidr: string): string {
  return `"${bridgeName} pods ${cidr}"`
}

/** The firewall has a program, and rules of its own, for each address family. */
export type Firewall = 'iptables' | 'ip6tables'

/** For `-w`: how many seconds a program of the firewall waits for its lock. */
export const lockSeconds = '5'

/** The firewalls that the traffic of these subnets meets. */
export function selectFirewalls(podCidrs: readonly string[]): readonly Firewall[] {
  return [...new Set(podCidrs.map((cidr) => (cidr.includes(':') ? 'ip6tables' : 'iptables')))]
}
