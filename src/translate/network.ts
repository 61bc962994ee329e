/* What a pod sees of names: its resolv.conf, its host name, its hosts file. */
import { PoddError } from '../base/errors.ts'
import type { DNSConfig, Sent } from '../cri-types/cri-v1.ts'
import type { HostAlias, Pod, PodDnsConfig } from '../pod/schema/pod-schema.ts'

/** The content of a resolv.conf. */
export interface ResolvConf {
  readonly servers: readonly string[]
  readonly searches: readonly string[]
  readonly options: readonly string[]
}

/**
 * Reads a resolv.conf: the last `search` or `domain` and all `nameserver` and `options` count (`network/dns/dns.go`,
 * parseResolvConf, 1.36).
 */
export function parseResolvConf(text: string): ResolvConf {
  const servers: string[] = []
  const options: string[] = []
  let searches: readonly string[] = []
  for (const line of text.split('\n')) {
    const [keyword, ...values] = line.trim().split(/\s+/)
    if (keyword === 'nameserver' && values[0] !== undefined) servers.push(values[0])
    if (keyword === 'search') searches = values.map((name) => (name === '.' ? name : name.replace(/\.$/, '')))
    if (keyword === 'options') options.push(...values)
  }
  return { servers, searches, options }
}

/**
 * The host's resolver as pods can use it. A server on the host's loopback can't be reached inside a pod's
 * network namespace: where the host has no other, what systemd-resolved itself asks stands in.
 */
export function selectHostResolver(etc: ResolvConf, systemdResolved: ResolvConf | undefined): ResolvConf {
  const reachable = etc.servers.some((server) => !isLoopback(server))
  if (reachable || systemdResolved === undefined || systemdResolved.servers.length === 0) return etc
  return systemdResolved
}

/** Whether pods with a network of their own can't resolve names: it has only servers on the host's loopback, or none. */
export function isUnreachable({ servers }: Pick<ResolvConf, 'servers'>): boolean {
  return servers.every((server) => isLoopback(server))
}

function isLoopback(server: string): boolean {
  return server.startsWith('127.') || server === '::1'
}

/** A pod's resolv.conf, and a warning event about it (`reason`, `message`). */
export interface PodDns {
  readonly config: Sent<DNSConfig>
  readonly warnings: readonly {
    readonly reason: 'MissingClusterDNS' | 'DNSConfigForming'
    readonly message: string
  }[]
}

/**
 * How a pod resolves names (`network/dns/dns.go`, GetPodDNS, 1.36): there is no cluster DNS, so ClusterFirst is the host's
 * resolver.
 */
export function podDns(pod: Pod, host: ResolvConf): PodDns {
  const { dnsPolicy, hostNetwork, dnsConfig } = pod.spec
  const base = dnsPolicy === 'None' ? emptyConf : host
  const { conf, cut } = fitLimits(dnsConfig === undefined ? base : mergeDnsConfig(base, dnsConfig))
  const message = `there is no cluster DNS on this host: dnsPolicy ${dnsPolicy} falls back to the resolver of the host`
  const missing =
    dnsPolicy === 'ClusterFirstWithHostNet' ? [{ reason: 'MissingClusterDNS' as const, message }] : []
  const unreachable = !hostNetwork && dnsPolicy !== 'None' && conf.servers.length > 0 && isUnreachable(conf)
  return { config: conf, warnings: [...missing, ...(unreachable ? [unreachableResolver(conf)] : []), ...cut] }
}

/** The text of the pod's resolv.conf. */
export function podResolvConf(pod: Pod, host: ResolvConf): string {
  return formatResolvConf(podDns(pod, host).config)
}

/** The text of a resolv.conf, as containerd writes one. */
export function formatResolvConf({ servers = [], searches = [], options = [] }: Sent<DNSConfig>): string {
  const lines = [
    ...(searches.length === 0 ? [] : [`search ${searches.join(' ')}`]),
    ...servers.map((server) => `nameserver ${server}`),
    ...(options.length === 0 ? [] : [`options ${options.join(' ')}`]),
  ]
  return lines.map((line) => `${line}\n`).join('')
}

const emptyConf: ResolvConf = { servers: [], searches: [], options: [] }

/** What a pod's dnsConfig adds; an option it names replaces one of that name. */
function mergeDnsConfig(base: ResolvConf, own: PodDnsConfig): ResolvConf {
  const options = new Map(base.options.map((option) => [option.split(':', 1)[0] ?? option, option]))
  for (const { name, value } of own.options) {
    // Validation refuses them, and a pod that was accepted before it did may have them still.
    if (/\p{Cc}/u.test(`${name}${value}`)) continue
    options.set(name, value === undefined || value === '' ? name : `${name}:${value}`)
  }
  return {
    servers: [...new Set([...base.servers, ...own.nameservers])],
    searches: [...new Set([...base.searches, ...own.searches])],
    options: [...options.values()],
  }
}

/** The limits of the C library's resolver, and therefore of Kubernetes (`pkg/apis/core/validation`, 1.36). */
const maxServers = 3
const maxSearches = 32
const maxSearchCharacters = 2048

function fitLimits(conf: ResolvConf): { readonly conf: ResolvConf; readonly cut: PodDns['warnings'] } {
  const servers = conf.servers.slice(0, maxServers)
  let searches = conf.searches.slice(0, maxSearches)
  while (searches.join(' ').length > maxSearchCharacters) searches = searches.slice(0, -1)
  const cut: { reason: 'DNSConfigForming'; message: string }[] = []
  if (servers.length < conf.servers.length) {
    const line = servers.join(' ')
    const message = `Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: ${line}`
    cut.push({ reason: 'DNSConfigForming', message })
  }
  if (searches.length < conf.searches.length) {
    const line = searches.join(' ')
    const message = `Search Line limits were exceeded, some search paths have been omitted, the applied search line is: ${line}`
    cut.push({ reason: 'DNSConfigForming', message })
  }
  return { conf: { servers, searches, options: conf.options }, cut }
}

function unreachableResolver({ servers }: Pick<ResolvConf, 'servers'>): PodDns['warnings'][number] {
  const message = `the pod resolves no names: the resolver of the host, ${servers.join(', ')}, is on the host's loopback, which the pod does not reach; name another server in the host's resolv.conf, or give the pod dnsPolicy None with servers of its own`
  return { reason: 'DNSConfigForming', message }
}

const longestHostname = 63
/** The kernel's limit. */
const longestNodename = 64

interface PodHostname {
  readonly hostname: string
  /** Empty where the pod has no subdomain. */
  readonly domain: string
}

/** `kubelet_pods.go`, GeneratePodHostNameAndDomain (1.36), with an empty cluster domain: there is no cluster DNS. */
export function podHostname({ metadata, spec }: Pod): PodHostname {
  const { hostnameOverride } = spec
  if (hostnameOverride !== undefined && hostnameOverride !== '')
    return { hostname: hostnameOverride, domain: '' }
  const name = spec.hostname === undefined || spec.hostname === '' ? metadata.name : spec.hostname
  const cut = name.length > longestHostname ? name.slice(0, longestHostname).replace(/[-.]+$/, '') : name
  const subdomain = spec.subdomain ?? ''
  return { hostname: cut, domain: subdomain === '' ? '' : `${subdomain}.${metadata.namespace}.svc` }
}

/**
 * What `hostname` says inside the pod (`pkg/kubelet/util`, GetNodenameForKernel, 1.36).
 * @throws PoddError POD_HOSTNAME_TOO_LONG when setHostnameAsFQDN gives more than the kernel takes
 */
export function kernelHostname({ hostname, domain }: PodHostname, asFqdn: boolean): string {
  if (!asFqdn || domain === '') return hostname
  const fqdn = `${hostname}.${domain}`
  if (fqdn.length <= longestNodename) return fqdn
  throw new PoddError(
    'POD_HOSTNAME_TOO_LONG',
    `setHostnameAsFQDN: the FQDN ${fqdn} is too long (${fqdn.length} characters, at most ${longestNodename})`,
    { hint: 'Shorten hostname or subdomain.' },
  )
}

/** The domain that a cluster's DNS has unless it is told another; names of Services end with it. */
const clusterDomain = 'cluster.local'

/**
 * A pod's /etc/hosts, as `kubelet_pods.go`, managedHostsFileContent (1.36) has it. A pod with a subdomain finds itself by all
 * that the others call it, before it is ready, too; the canonical name is the one that it has in a cluster.
 */
export function podHostsFile(input: {
  /** The pod's addresses, the primary one first. */
  readonly ips: readonly string[]
  readonly hostname: PodHostname
  readonly aliases: readonly HostAlias[]
  /** See servicesSection. */
  readonly services: string
}): string {
  const { hostname, domain } = input.hostname
  const own = `${hostname}.${domain}`
  const names = domain === '' ? hostname : `${own}.${clusterDomain}\t${own}\t${hostname}`
  const lines = ['# Kubernetes-managed hosts file.', ...builtIn, ...input.ips.map((ip) => `${ip}\t${names}`)]
  return `${lines.join('\n')}\n${aliasLines(input.aliases)}${input.services}`
}

/** The /etc/hosts of a pod on the host's network: the host's own, and the pod's aliases. */
export function hostNetworkHostsFile(input: {
  /** The text of the host's /etc/hosts. */
  readonly hostFile: string
  readonly aliases: readonly HostAlias[]
  /** See servicesSection. */
  readonly services: string
}): string {
  const added = `${aliasLines(input.aliases)}${input.services}`
  return `# Kubernetes-managed hosts file (host network).\n${input.hostFile}${added}`
}

const builtIn = [
  '127.0.0.1\tlocalhost',
  '::1\tlocalhost ip6-localhost ip6-loopback',
  'fe00::0\tip6-localnet',
  'fe00::0\tip6-mcastprefix',
  'fe00::1\tip6-allnodes',
  'fe00::2\tip6-allrouters',
]

function aliasLines(aliases: readonly HostAlias[]): string {
  return section('HostAliases', aliases)
}

/** What a hosts file has of Services, at its end. */
export function servicesSection(services: readonly HostAlias[]): string {
  return section('Services', services)
}

/** The same of the text of a hosts file. */
export function servicesSectionOf(text: string): string {
  const at = text.lastIndexOf(headOf('Services'))
  return at < 0 ? '' : text.slice(at)
}

function section(what: string, entries: readonly HostAlias[]): string {
  if (entries.length === 0) return ''
  const lines = entries.map(({ ip, hostnames }) => `${ip}\t${hostnames.join('\t')}`)
  return `${headOf(what)}${lines.join('\n')}\n`
}

function headOf(what: string): string {
  return `\n# Entries added by ${what}.\n`
}
