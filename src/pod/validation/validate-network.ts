import type { FieldPath } from '../schema/field-path.ts'
import type { PodSpec } from '../schema/pod-schema.ts'
import { hostAliasSchema, podDNSConfigSchema } from '../schema/pod-schema.ts'
import type { Infer } from '../schema/types.ts'
import { list } from '../schema/types.ts'
import type { Issues } from './issues.ts'
import { fieldOf } from './issues.ts'
import { dnsSubdomain, dnsSubdomainWithUnderscore, ipAddress, oneLine } from './name-rules.ts'

const maxNameservers = 3
const maxSearches = 32
const maxSearchCharacters = 2048
/** What the kernel takes. */
const longestHostname = 64

/** Names and name servers. Source: pkg/apis/core/validation (validatePodDNSConfig, ValidateHostAliases), 1.36. */
export function validateNetwork(spec: PodSpec, path: FieldPath, issues: Issues): void {
  const dnsConfig = fieldOf(spec, 'dnsConfig', podDNSConfigSchema)
  if (spec.dnsPolicy === 'None' && dnsConfig === undefined) {
    const detail = 'must provide `dnsConfig` when `dnsPolicy` is None'
    issues.required([...path, 'dnsConfig'], detail)
  } else if (spec.dnsPolicy === 'None' && dnsConfig?.nameservers.length === 0) {
    const detail = 'must provide at least one DNS nameserver when `dnsPolicy` is None'
    issues.required([...path, 'dnsConfig', 'nameservers'], detail)
  } else if (dnsConfig !== undefined) validateDnsConfig(dnsConfig, [...path, 'dnsConfig'], issues)
  const aliases = fieldOf(spec, 'hostAliases', list(hostAliasSchema)) ?? []
  validateHostnameOverride(spec, path, issues)
  for (const [index, { ip, hostnames }] of aliases.entries()) {
    const at = [...path, 'hostAliases', index]
    issues.name([...at, 'ip'], ip, ipAddress)
    for (const [position, name] of hostnames.entries()) {
      issues.name([...at, 'hostnames', position], name, dnsSubdomain)
    }
  }
}

/** Source: pkg/apis/core/validation (ValidatePodSpec, hostnameOverride), 1.36. */
function validateHostnameOverride(spec: PodSpec, path: FieldPath, issues: Issues): void {
  const { hostnameOverride, hostNetwork, setHostnameAsFQDN } = spec
  if (hostnameOverride === undefined) return
  const at = [...path, 'hostnameOverride']
  if (hostNetwork) issues.forbidden(at, 'may not be specified when hostNetwork is true')
  if (setHostnameAsFQDN) issues.forbidden(at, 'may not be specified when setHostnameAsFQDN is true')
  if (hostnameOverride.length > longestHostname) issues.tooLong(at, longestHostname)
  issues.name(at, hostnameOverride, dnsSubdomain)
}

function validateDnsConfig(
  { nameservers, searches, options }: Infer<typeof podDNSConfigSchema>,
  path: FieldPath,
  issues: Issues,
): void {
  if (nameservers.length > maxNameservers) {
    const detail = `must not have more than ${maxNameservers} nameservers`
    issues.invalid([...path, 'nameservers'], nameservers, detail)
  }
  for (const [index, server] of nameservers.entries()) {
    issues.name([...path, 'nameservers', index], server, ipAddress)
  }
  if (searches.length > maxSearches) {
    const detail = `must not have more than ${maxSearches} search paths`
    issues.invalid([...path, 'searches'], searches, detail)
  }
  if (searches.join(' ').length > maxSearchCharacters) {
    const detail = `must not have more than ${maxSearchCharacters} characters (including spaces) in the search list`
    issues.invalid([...path, 'searches'], searches, detail)
  }
  for (const [index, search] of searches.entries()) {
    // A trailing dot makes it absolute, and `.` alone is the root.
    const name = search.replace(/\.$/, '')
    if (search !== '.') issues.name([...path, 'searches', index], name, dnsSubdomainWithUnderscore)
  }
  for (const [index, option] of options.entries()) {
    const at = [...path, 'options', index]
    if (option.name === '') issues.required(at, 'must not be empty')
    issues.name([...at, 'name'], option.name, oneLine)
    issues.name([...at, 'value'], option.value ?? '', oneLine)
  }
}
