import type { Pod } from '../../pod/schema/pod-schema.ts'
import { formatResolvConf, podDns } from '../../translate/network/dns.ts'
import type { PodDns, ResolvConf } from '../../translate/network/dns.ts'

/** How a pod resolves names on this host: there is no cluster DNS. */
export function podResolver(pod: Pod, host: ResolvConf): PodDns {
  return podDns({ pod, host, clusterServers: [], clusterDomain: '' })
}

/** The text of the pod's resolv.conf. */
export function podResolvConf(pod: Pod, host: ResolvConf): string {
  return formatResolvConf(podResolver(pod, host).config)
}
