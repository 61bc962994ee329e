/*
 * Rules for names, each giving its complaints in Kubernetes' words. Source:
 * k8s.io/apimachinery/pkg/util/validation/validation.go, of labels and their keys
 * k8s.io/apimachinery/pkg/api/validate/content/kube.go, 1.36.
 */
import { isIP, isIPv4, isIPv6 } from 'node:net'

const labelPattern = '[a-z0-9]([-a-z0-9]*[a-z0-9])?'
const subdomainPattern = `${labelPattern}(\\.${labelPattern})*`
const underscoredLabelPattern = '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?'
const underscoredSubdomainPattern = `${underscoredLabelPattern}(\\.${underscoredLabelPattern})*`
const qualifiedPattern = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'

const isLabel = new RegExp(`^${labelPattern}$`)
const isSubdomain = new RegExp(`^${subdomainPattern}$`)
const isUnderscoredSubdomain = new RegExp(`^${underscoredSubdomainPattern}$`)
const isQualified = new RegExp(`^${qualifiedPattern}$`)

/** The API server counts bytes, and calls them so for labels and their keys alone. */
function tooLong(
  value: string,
  maxBytes: number,
  unit: 'bytes' | 'characters' = 'characters',
): readonly string[] {
  return Buffer.byteLength(value) > maxBytes ? [`must be no more than ${maxBytes} ${unit}`] : []
}

/** Names of containers, volumes, namespaces. */
export function dnsLabel(value: string): readonly string[] {
  return [
    ...tooLong(value, 63),
    ...(isLabel.test(value)
      ? []
      : isSubdomain.test(value)
        ? ['must not contain dots']
        : [
            `a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start ` +
              `and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is ` +
              `'${labelPattern}')`,
          ]),
  ]
}

/** Names of Services. */
export function dns1035Label(value: string): readonly string[] {
  return [
    ...tooLong(value, 63),
    ...(/^[a-z](?:[-a-z0-9]*[a-z0-9])?$/.test(value)
      ? []
      : [
          `a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic ` +
            `character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for ` +
            `validation is '[a-z]([-a-z0-9]*[a-z0-9])?')`,
        ]),
  ]
}

/** Names of pods and of most other objects. */
export function dnsSubdomain(value: string, unit: 'bytes' | 'characters' = 'characters'): readonly string[] {
  return [
    ...tooLong(value, 253, unit),
    ...(isSubdomain.test(value)
      ? []
      : [
          `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and ` +
            `must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is ` +
            `'${subdomainPattern}')`,
        ]),
  ]
}

/**
 * Names of roles and their bindings (k8s.io/apimachinery/pkg/api/validation/path/name.go, IsValidPathSegmentName, 1.36); on
 * one line, unlike there.
 */
export function pathSegment(value: string): readonly string[] {
  if (value === '.' || value === '..') return [`may not be '${value}'`]
  const found = ['/', '%'].filter((text) => value.includes(text))
  return [...found.map((text) => `may not contain '${text}'`), ...oneLine(value)]
}

/** Search domains of a resolver, of which parts may begin with an underscore. */
export function dnsSubdomainWithUnderscore(value: string): readonly string[] {
  return [
    ...tooLong(value, 253),
    ...(isUnderscoredSubdomain.test(value)
      ? []
      : [
          `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and ` +
            `must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is ` +
            `'${underscoredSubdomainPattern}')`,
        ]),
  ]
}

/**
 * Addresses in fields that are older than strict rules for them
 * (k8s.io/apimachinery/pkg/util/validation/ip.go, IsValidIPForLegacyField with StrictIPCIDRValidation, 1.36). An address
 * with a zone is none.
 */
export function ipAddress(value: string): readonly string[] {
  if (isIP(value) === 0 || value.includes('%')) {
    const plain = value.replaceAll(/(?<![0-9])0+(?=[0-9])/gu, '')
    if (isIPv4(plain)) return ['must not have leading 0s']
    return ['must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)']
  }
  return isMappedIPv4(value) ? ['must not be an IPv4-mapped IPv6 address'] : []
}

function isMappedIPv4(value: string): boolean {
  return isIPv6(value) && /^\[::ffff:[0-9a-f]+:[0-9a-f]+\]$/u.test(new URL(`http://[${value}]`).hostname)
}

/** What stands on a line of a file: a line break would begin another one. The API server has no such rule. */
export function oneLine(value: string): readonly string[] {
  return /[\p{Cc}\p{Zl}\p{Zp}]/u.test(value)
    ? ['must not contain line breaks and other control characters']
    : []
}

/** Keys of labels and annotations: a name, optionally with a DNS name and a slash before it. */
export function qualifiedName(value: string): readonly string[] {
  const parts = value.split('/')
  const [first = '', second] = parts
  if (parts.length > 2) {
    return [
      `a valid label key ${qualifiedForm} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ]
  }
  const name = second ?? first
  const prefixProblems =
    second === undefined
      ? []
      : first === ''
        ? ['prefix part must be non-empty']
        : dnsSubdomain(first, 'bytes').map((complaint) => `prefix part ${complaint}`)
  return [
    ...prefixProblems,
    ...(name === '' ? ['name part must be non-empty'] : []),
    ...tooLong(name, 63, 'bytes').map((complaint) => `name part ${complaint}`),
    ...(isQualified.test(name) ? [] : [`name part ${qualifiedForm}`]),
  ]
}

const qualifiedForm =
  `must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an ` +
  `alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is ` +
  `'${qualifiedPattern}')`

export function labelValue(value: string): readonly string[] {
  return [
    ...tooLong(value, 63, 'bytes'),
    ...(value === '' || isQualified.test(value)
      ? []
      : [
          `a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must ` +
            `start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used ` +
            `for validation is '(${qualifiedPattern})?')`,
        ]),
  ]
}

/** Names of ports (IANA service names). */
export function portName(value: string): readonly string[] {
  const complaints = value.length > 15 ? ['must be no more than 15 characters'] : []
  if (!/^[-a-z0-9]+$/.test(value)) {
    complaints.push(`must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)`)
  }
  if (!/[a-z]/.test(value)) complaints.push('must contain at least one letter (a-z)')
  if (value.includes('--')) complaints.push('must not contain consecutive hyphens')
  if (value.startsWith('-') || value.endsWith('-')) {
    complaints.push('must not begin or end with a hyphen')
  }
  return complaints
}

/** Names of environment variables, as relaxed since 1.34. */
export function envVarName(value: string): readonly string[] {
  if (/^[\x20-\x3c\x3e-\x7e]+$/.test(value)) return []
  return ["a valid environment variable name must consist only of printable ASCII characters other than '='"]
}

export function httpHeaderName(value: string): readonly string[] {
  if (/^[-A-Za-z0-9]+$/.test(value)) return []
  return [
    `a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for ` +
      `validation is '[-A-Za-z0-9]+')`,
  ]
}

/** Keys of ConfigMaps and Secrets. */
export function configMapKey(value: string): readonly string[] {
  const complaints = [...tooLong(value, 253)]
  if (!/^[-._a-zA-Z0-9]+$/.test(value)) {
    complaints.push(
      `a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or ` +
        `'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')`,
    )
  }
  if (value === '.' || value === '..') complaints.push(`must not be '${value}'`)
  else if (value.startsWith('..')) complaints.push(`must not start with '..'`)
  return complaints
}
