import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { BlockList, isIP } from 'node:net'
import type { PodObject } from '../../api/resource.ts'
import { errorMessage } from '../../base/errors.ts'
import { isHeaderValue, lenientParsing, nodeHttp } from '../../base/http.ts'
import { objectsAt } from '../../base/json.ts'
import type { JsonObject } from '../../base/json.ts'
import { isBrowser } from '../access/browser-requests.ts'
import { ApiError } from '../requests/api-error.ts'
import type { ApiRequest, ApiResponse } from '../requests/request.ts'

interface ProxiedTo {
  readonly scheme: 'http' | 'https'
  readonly host: string
  readonly port: number
  /** The path and query at the server, with a leading slash. */
  readonly path: string
  /** The prefix of the server's paths at the proxy, without a trailing slash. */
  readonly base: string
}

/**
 * Headers that are not forwarded: those of one connection (RFC 9110, 7.6.1), and the client's credentials. A browser has
 * cookies of other servers on the same host; of servers in pods it has none, as `Set-Cookie` is not passed on.
 */
const ownHeaders = new Set(
  (
    'authorization connection content-length cookie host keep-alive proxy-authenticate proxy-authorization ' +
    'proxy-connection te trailer transfer-encoding upgrade'
  ).split(' '),
)

function isPassedOn(name: string, { connection = '' }: IncomingHttpHeaders): boolean {
  if (ownHeaders.has(name) || name.startsWith('impersonate-')) return false
  return !connection.split(',').some((named) => named.trim().toLowerCase() === name)
}

/**
 * The headers of a response that are passed on: those about its body. Others would hold for podd's own origin: cookies,
 * permissions, where scripts and service workers may reach, what the browser has to forget, other servers that stand
 * for this one, redirects (`Refresh`), passwords to be asked for.
 */
const passedBack: readonly string[] = (
  'accept-ranges age allow cache-control content-disposition content-encoding content-language content-range date ' +
  'etag expires last-modified retry-after vary'
).split(' ')

/**
 * Forwards a request, and streams the response back (`apimachinery/pkg/util/proxy`, UpgradeAwareHandler, 1.36): a pod's
 * certificate is not checked, and links in pages stay as they are. Unlike there, a browser gets nothing that would act
 * with podd's own origin: the listener puts each body into a sandbox (`http-listener.ts`), `passedBack` names the
 * headers, and redirects stay within the pod. Throws ApiError where the server can't be reached.
 */
export async function proxyRequest(request: ApiRequest, to: ProxiedTo): Promise<ApiResponse> {
  const body = await request.readBody()
  const headers = Object.fromEntries(
    Object.entries(request.headers).flatMap(([name, value]) =>
      value === undefined || !isPassedOn(name, request.headers) ? [] : [[name, value] as const],
    ),
  )
  const forwarded = { ...headers, 'x-forwarded-uri': `${to.base}${to.path.split('?', 1)[0] ?? ''}` }
  const sent = send(request, to, { ...forwarded, ...(body.length > 0 && { 'content-length': body.length }) })
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    sent.once('response', resolve)
    sent.once('error', reject)
    sent.end(body)
  }).catch((error: unknown) => {
    throw new ApiError(503, `error trying to reach service: ${errorMessage(error)}`)
  })
  const { 'content-type': contentType = '', location } = answer.headers
  const target = location === undefined || !isHeaderValue(location) ? undefined : redirect(location, to)
  if (target?.leaves === true && isBrowser(request.headers)) {
    answer.destroy()
    throw new ApiError(
      403,
      `the server in the pod redirects to ${JSON.stringify(location)}, which is not in the pod`,
      'Open that address itself where you trust the pod.',
    )
  }
  const told = passedBack.flatMap((name) => {
    const value = answer.headers[name]
    return value === undefined || ![value].flat().every(isHeaderValue) ? [] : [[name, value] as const]
  })
  return {
    status: answer.statusCode ?? 502,
    contentType: isHeaderValue(contentType) && contentType !== '' ? contentType : 'application/octet-stream',
    headers: { ...Object.fromEntries(told), ...(target !== undefined && { location: target.location }) },
    body: answer,
    headFirst: true,
    mayWait: true,
  }
}

function send(
  { method, signal }: ApiRequest,
  { scheme, host, port, path }: ProxiedTo,
  headers: Readonly<Record<string, string | number | readonly string[]>>,
): ClientRequest {
  const own = { ...headers, host: `${host}:${port}` }
  const options = { host, port, path, method, headers: own, signal, agent: false, ...lenientParsing }
  if (scheme === 'http') return nodeHttp.request(options)
  const https = process.getBuiltinModule('node:https')
  return https.request({ ...options, rejectUnauthorized: false })
}

/** Where a redirect leads: within the server it stays within the proxy, also one that climbs (`../..`). */
function redirect(
  location: string,
  { scheme, host, port, path, base }: ProxiedTo,
): { readonly location: string; readonly leaves: boolean } {
  const origin = `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`
  const url = URL.parse(location, `${origin}${path}`)
  if (url === null || url.origin !== new URL(origin).origin) return { location, leaves: true }
  return { location: `${base}${url.pathname}${url.search}${url.hash}`, leaves: false }
}

/** The parts of the name in the path of a proxied request: `[SCHEME:]NAME[:PORT]`. */
interface ProxyName {
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
  return { host, port: port ?? firstPort(spec) ?? (scheme === 'https' ? 443 : 80) }
}

/** Of all the ports of a pod's containers. */
function firstPort(spec: JsonObject): number | undefined {
  const ports = objectsAt(spec, 'containers').map((container) => objectsAt(container, 'ports')[0])
  return ports.map((port) => port?.['containerPort']).find((port) => typeof port === 'number')
}
