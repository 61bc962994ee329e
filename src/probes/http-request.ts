import type { Probe } from '../pod/schema/container-schema.ts'
import { joinHostPort } from './go-words.ts'
import { resolvePort } from './resolve-port.ts'
import type { ProbeTarget } from './probe-outcome.ts'

/** Of probes and of lifecycle hooks alike. */
export type HttpGetAction = NonNullable<Probe['httpGet']>

export interface HttpRequest {
  readonly scheme: 'http' | 'https'
  /** A name or an address, an IPv6 one without brackets. */
  readonly host: string
  readonly port: number
  /** With the query; begins with a slash. */
  readonly path: string
  /** Names as the manifest spells them; a name may come more than once. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** The Host header, if it isn't to be host and port. */
  readonly hostHeader: string | undefined
}

export type BuiltRequest =
  | { readonly kind: 'request'; readonly request: HttpRequest }
  | { readonly kind: 'invalid'; readonly message: string }

/** Never sent, whatever the manifest says: Go's client leaves them out too. */
const unsentHeaders: ReadonlySet<string> = new Set(['host', 'content-length', 'transfer-encoding', 'trailer'])

/** The request behind an `httpGet` (kubelet pkg/probe/http/request.go NewRequestForHTTPGetAction, 1.36). */
export function buildHttpRequest(
  action: HttpGetAction,
  target: Pick<ProbeTarget, 'podIps' | 'ports'>,
  userAgent: string,
): BuiltRequest {
  const resolved = resolvePort(action.port, target.ports)
  if (resolved.kind === 'invalid') return resolved
  const host = action.host || target.podIps[0]
  if (host === undefined) return { kind: 'invalid', message: 'the pod has no IP address yet' }
  return {
    kind: 'request',
    request: {
      scheme: action.scheme === 'HTTPS' ? 'https' : 'http',
      host,
      port: resolved.port,
      path: requestPath(action.path),
      headers: requestHeaders(action.httpHeaders, userAgent),
      hostHeader: action.httpHeaders.find(({ name }) => name.toLowerCase() === 'host')?.value || undefined,
    },
  }
}

/** As the kubelet prints it: default ports are shown too. */
export function requestUrl({ scheme, host, port, path }: HttpRequest): string {
  return `${scheme}://${joinHostPort(host, port)}${path}`
}

/** The path of a manifest may be relative, be a whole URL (only its path counts then), or hold what a request line can't. */
function requestPath(path: string): string {
  const local = path.replace(/^(?:[a-z][a-z0-9+.-]*:)?\/\/[^/?#]*/i, '').replace(/#.*$/s, '')
  const rooted = local.startsWith('/') ? local : `/${local}`
  return rooted.toWellFormed().replaceAll(/[^!-~]+/gu, (text) => encodeURIComponent(text))
}

function requestHeaders(
  given: HttpGetAction['httpHeaders'],
  userAgent: string,
): readonly (readonly [string, string])[] {
  const named = (wanted: string) => given.find(({ name }) => name.toLowerCase() === wanted)?.value
  // Set to nothing means: not sent.
  const dropped = ['user-agent', 'accept'].filter((name) => named(name) === '')
  const sent = given
    .filter(({ name }) => !unsentHeaders.has(name.toLowerCase()) && !dropped.includes(name.toLowerCase()))
    .map(({ name, value }): readonly [string, string] => [name, value])
  if (named('user-agent') === undefined) sent.push(['User-Agent', userAgent])
  if (named('accept') === undefined) sent.push(['Accept', '*/*'])
  return sent
}
