import { findExecutable } from '../../host/find-executable.ts'
import { commandOutput } from '../../host/run-command.ts'
import type { ContainerdPlaces } from '../process/containerd-places.ts'
import { lockSeconds } from './firewall.ts'
import type { Firewall } from './firewall.ts'

/*
 * Pods reach other hosts under the host's own address. One rule for each of the pods' subnets does for all pods what the
 * bridge plugin's `ipMasq` does by a chain for each (`plugins/pkg/ip/ipmasq_linux.go`, containernetworking/plugins 1.x):
 * traffic between pods and multicast keep the pod's address.
 */

/** Of the rules in `nat` that iptables-save prints, without the leading `-A `: one that masquerades this network's pods. */
export function isMasquerade(rule: string, { bridgeName }: ContainerdPlaces): boolean {
  return (
    rule.startsWith('POSTROUTING ') &&
    rule.includes(`"${bridgeName} pods `) &&
    rule.endsWith(' -j MASQUERADE')
  )
}

/** The same of any podd's network: that has its rule before its first pod. */
export function isMasqueradeOfAny(rule: string): boolean {
  return /^POSTROUTING .* --comment "podd\S* pods .* -j MASQUERADE$/u.test(rule)
}

/**
 * The rules that are not among those that iptables-save printed of `nat`, in its form, without the leading `-A `.
 * @param podCidrs the pods' subnets, those of the other address family too
 */
export function missingMasquerade(
  rules: readonly string[],
  places: ContainerdPlaces,
  { firewall, podCidrs }: { readonly firewall: Firewall; readonly podCidrs: readonly string[] },
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
  const missing = missingMasquerade(rules, places, { firewall, podCidrs })
  if (missing.length === 0) return
  const input = ['*nat', ...missing.map((rule) => `-A ${rule}`), 'COMMIT', ''].join('\n')
  await commandOutput(restore, ['--noflush', '-w', lockSeconds], { input })
}

function masqueradeRule(places: ContainerdPlaces, cidr: string): string {
  const multicast = cidr.includes(':') ? 'ff00::/8' : '224.0.0.0/4'
  const comment = `-m comment --comment ${commentOf(places, cidr)}`
  return `POSTROUTING -s ${cidr} ! -d ${multicast} ! -o ${places.bridgeName} ${comment} -j MASQUERADE`
}

/**
 * The comment that identifies a rule, however iptables prints its subnet. It has a blank, so that it is always quoted.
 */
function commentOf({ bridgeName }: ContainerdPlaces, cidr: string): string {
  return `"${bridgeName} pods ${cidr}"`
}
