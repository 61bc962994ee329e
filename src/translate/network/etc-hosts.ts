import type { PodHostname } from './hostname.ts'
import type { HostAlias } from '../spec/spec-view.ts'

const builtIn = [
  '127.0.0.1\tlocalhost',
  '::1\tlocalhost ip6-localhost ip6-loopback',
  'fe00::0\tip6-localnet',
  'fe00::0\tip6-mcastprefix',
  'fe00::1\tip6-allnodes',
  'fe00::2\tip6-allrouters',
]

/** A pod's /etc/hosts, as `kubelet_pods.go`, managedHostsFileContent (1.36) has it. */
export function podHostsFile(input: {
  /** The pod's addresses, the primary one first. */
  readonly ips: readonly string[]
  readonly hostname: PodHostname
  readonly aliases: readonly HostAlias[]
}): string {
  const { hostname, domain } = input.hostname
  const names = domain === '' ? hostname : `${hostname}.${domain}\t${hostname}`
  const lines = ['# Kubernetes-managed hosts file.', ...builtIn, ...input.ips.map((ip) => `${ip}\t${names}`)]
  return `${lines.join('\n')}\n${aliasLines(input.aliases)}`
}

/** The /etc/hosts of a pod on the host's network: the host's own, and the pod's aliases. */
export function hostNetworkHostsFile(input: {
  /** The text of the host's /etc/hosts. */
  readonly hostFile: string
  readonly aliases: readonly HostAlias[]
}): string {
  return `# Kubernetes-managed hosts file (host network).\n${input.hostFile}${aliasLines(input.aliases)}`
}

function aliasLines(aliases: readonly HostAlias[]): string {
  if (aliases.length === 0) return ''
  const lines = aliases.map(({ ip, hostnames }) => `${ip}\t${hostnames.join('\t')}`)
  return `\n# Entries added by HostAliases.\n${lines.join('\n')}\n`
}
