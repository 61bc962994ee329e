import { BlockList, isIP } from 'node:net'
import type { PodObject } from '../../api/resource.ts'
import { isJsonObject } from '../../base/json.ts'
import type { Json } from '../../base/json.ts'
import { ApiError } from '../requests/api-error.ts'

/** The parts of the name in the path of a proxied request: `[SCHEME:]NAME[:PORT]`. */
export interface ProxyName {
  readonly scheme: 'http' | 'https'
  readonly name: string
  /** Undefined: the pod's first. */
  readonly port: number | undefined
}

/** Reads a name of that form (`apimachinery/pkg/util/net`, SplitSchemeNamePort, 1.36). Throws ApiError. */
export function parseProxyName(text: string): ProxyName {
  const parts = text.split(':')
  const [first = '', second = '', third = ''] = parts
  const [scheme, name, port] = parts.length === 3 ? [first, second, third] : ['', first, second]
  if (parts.length > 3 || name === '' || (scheme !== '' && scheme !== 'http' && scheme !== 'https'))
    throw new ApiError(400, `invalid pod request ${JSON.stringify(text)}`)
  return { scheme: scheme === 'https' ? 'https' : 'http', name, port: readPort(port, text) }
}

function readPort(port: string, text: string): number | undefined {
  if (port === '') return undefined
  const number = /^\d{1,5}$/u.test(port) ? Number(port) : 0
  if (number >= 1 && number <= 65_535) return number
  throw new ApiError(400, `invalid pod request ${JSON.stringify(text)}: the port must be a number`)
}

/**
 * Addresses at which no pod is, but the host itself or whatever answers nearby: unspecified, loopback, link-local and
 * multicast ones (an API server refuses them too: `pkg/registry/core/pod/strategy.go`, ResourceLocation, 1.36). A pod of the
 * host's network has such a one where the host has no network.
 */
const notOfPods = new BlockList()
for (const [network, bits] of [
  ['0.0.0.0', 8],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['224.0.0.0', 4],
] as const)
  notOfPods.addSubnet(network, bits)
for (const [network, bits] of [
  ['::', 127],
  ['fe80::', 10],
  ['ff00::', 8],
] as const)
  notOfPods.addSubnet(network, bits, 'ipv6')

/**
 * The address of a pod's server: the pod's address, with the first port of its containers by default, else the scheme's
 * (`pkg/registry/core/pod/strategy.go`, ResourceLocation, 1.36). Throws ApiError for a pod without an address, or one
 * that no longer runs, whose address another pod may have.
 */
export function proxyAddress(
  { metadata, spec, status }: PodObject,
  { scheme, port }: ProxyName,
): { readonly host: string; readonly port: number } {
  const isOver = status.phase === 'Succeeded' || status.phase === 'Failed'
  const { podIP: host } = status
  if (isOver || host === undefined || isIP(host) === 0)
    throw new ApiError(503, `pod ${JSON.stringify(metadata.name)} has no address to reach it at`)
  if (notOfPods.check(host, isIP(host) === 6 ? 'ipv6' : 'ipv4'))
    throw new ApiError(
      400,
      `pod ${JSON.stringify(metadata.name)} is at ${host}, which is the host's own: the proxy reaches pods alone`,
      'Use `podd port-forward`, or give the host a network address (`nodeIP`).',
    )
  return { host, port: port ?? firstPort(spec['containers']) ?? (scheme === 'https' ? 443 : 80) }
}

function firstPort(containers: Json | undefined): number | undefined {
  const all = Array.isArray(containers) ? containers : []
  const ports = all.flatMap((container: Json) => {
    const own = isJsonObject(container) ? container['ports'] : undefined
    const first = Array.isArray(own) ? own[0] : undefined
    const port = isJsonObject(first) ? first['containerPort'] : undefined
    return typeof port === 'number' ? [port] : []
  })
  return ports[0]
}
