/** The firewall has a program, and rules of its own, for each address family. */
export type Firewall = 'iptables' | 'ip6tables'

/** For `-w`: how many seconds a program of the firewall waits for its lock. */
export const lockSeconds = '5'

/** The firewalls that the traffic of these subnets meets. */
export function selectFirewalls(podCidrs: readonly string[]): readonly Firewall[] {
  return [...new Set(podCidrs.map((cidr) => (cidr.includes(':') ? 'ip6tables' : 'iptables')))]
}
