/**
 * One HTTP GET as the kubelet's probes and lifecycle hooks send it: a fresh connection, no keep-alive,
 * no proxy, no certificate check, at most 10 redirects and 10 KiB of body
 * (kubelet pkg/probe/http/http.go, 1.36). undici is loaded by the first request.
 */
import type { Client } from 'undici'
import type { AttemptBounds } from './bound-attempt.ts'
import { requestUrl } from './http-request.ts'
import type { HttpRequest } from './http-request.ts'
import { httpFailure, sendHttpRequest } from './http-send.ts'
import type { HttpAnswer, HttpFailure } from './http-send.ts'

const maxRedirects = 10
let clientClass: typeof Client | undefined

/** Node takes 0.2 ms to find a module that is loaded. */
async function loadClient(): Promise<typeof Client> {
  clientClass ??= (await import('undici')).Client
  return clientClass
}

const redirectStatuses: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

/**
 * Returns the last response; a redirect only where it leads to another host or nowhere. Never rejects. The time limit
 * covers the whole chain of redirects.
 */
export async function sendHttpGet(
  request: HttpRequest,
  bounds: AttemptBounds,
): Promise<HttpAnswer | HttpFailure> {
  // The load time doesn't count as the server's.
  const ClientClass = await loadClient()
  const { clock, timeoutMs, signal } = bounds
  const untilMs = timeoutMs === undefined ? undefined : clock.monotonicMs() + timeoutMs
  let current = request
  for (let redirects = 0; ; redirects += 1) {
    const leftMs = untilMs === undefined ? undefined : Math.max(0, untilMs - clock.monotonicMs())
    const answer = await sendHttpRequest(ClientClass, current, { clock, timeoutMs: leftMs, signal })
    if (answer.kind === 'error' || answer.location === undefined) return answer
    if (!redirectStatuses.has(answer.status)) return answer
    const next = redirectedRequest(request, current, answer.location)
    if (next === 'elsewhere') return answer
    if (next === 'invalid')
      return brokenChain(current, `failed to parse Location header "${answer.location}"`)
    if (redirects + 1 >= maxRedirects) return brokenChain(next, `stopped after ${maxRedirects} redirects`)
    current = next
  }
}

function brokenChain(at: HttpRequest, message: string): HttpFailure {
  return httpFailure(`Get "${requestUrl(at)}": ${message}`, 'answer')
}

/** Where a redirect leads; one to another host name isn't followed, one to another port is. */
function redirectedRequest(
  first: HttpRequest,
  current: HttpRequest,
  location: string,
): HttpRequest | 'elsewhere' | 'invalid' {
  const from = requestUrl(current)
  if (!URL.canParse(location, from)) return 'invalid'
  const url = new URL(location, from)
  if (url.hostname !== new URL(requestUrl(first)).hostname) return 'elsewhere'
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'invalid'
  const scheme = url.protocol === 'https:' ? 'https' : 'http'
  return {
    ...current,
    scheme,
    port: url.port === '' ? (scheme === 'https' ? 443 : 80) : Number(url.port),
    path: `${url.pathname}${url.search}`,
    // A Host header of the manifest's outlives only redirects that name no host themselves.
    hostHeader: URL.canParse(location) ? undefined : current.hostHeader,
  }
}
