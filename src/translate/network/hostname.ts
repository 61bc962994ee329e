import { PoddError } from '../../base/errors.ts'
import type { PodView } from '../spec/spec-view.ts'

const longestHostname = 63
/** The kernel's limit. */
const longestNodename = 64

export interface PodHostname {
  readonly hostname: string
  /** Empty where the pod has no subdomain. */
  readonly domain: string
}

/**
 * `kubelet_pods.go`, GeneratePodHostNameAndDomain (1.36).
 * @param clusterDomain what the pod's subdomain stands in; empty on a host without cluster DNS
 */
export function podHostname({ metadata, spec }: PodView, clusterDomain: string): PodHostname {
  const { hostnameOverride } = spec
  if (hostnameOverride !== undefined && hostnameOverride !== '')
    return { hostname: hostnameOverride, domain: '' }
  const name = spec.hostname === undefined || spec.hostname === '' ? metadata.name : spec.hostname
  const cut = name.length > longestHostname ? name.slice(0, longestHostname).replace(/[-.]+$/, '') : name
  const subdomain = spec.subdomain ?? ''
  const tail = clusterDomain === '' ? '' : `.${clusterDomain}`
  return { hostname: cut, domain: subdomain === '' ? '' : `${subdomain}.${metadata.namespace}.svc${tail}` }
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
