import type { Dispatcher } from 'undici'
import { isLoopbackHost } from '../../base/http.ts'
import { untilAborted } from '../../base/waits.ts'
import type { HttpAnswer, Validators } from './http-answer.ts'
import { discard, firstHeader, readAnswer } from './http-answer.ts'
import { describeFailure } from './http-failure.ts'
import type { HttpRoute } from './http-routes.ts'

const maxRedirects = 5
const redirectStatuses = [301, 302, 303, 307, 308]

export interface HttpGet {
  readonly url: URL
  readonly headers: Readonly<Record<string, readonly string[]>>
  /** The validators of podd's copy, for a conditional request. */
  readonly validators: Validators | undefined
  /** How long the server may delay the response while it has nothing new (RFC 7240, `Prefer: wait`). */
  readonly waitSeconds?: number | undefined
  /** Wall time. */
  readonly nowMs?: number
  /** Whether redirects may lead from this host to another unencrypted; by default they may not. */
  readonly allowHttp?: boolean | undefined
}

/** The connections to servers. */
interface Routes {
  find(url: URL, isOwn: boolean): Promise<HttpRoute>
  /** After a failed request. */
  destroy(): Promise<void>
}

/** One GET, with a bounded number of redirects and a bounded body. Never rejects. */
export async function getOnce(routes: Routes, get: HttpGet, signal: AbortSignal): Promise<HttpAnswer> {
  let proxy: string | undefined
  const findRoute = async (url: URL): Promise<Dispatcher> => {
    const route = await routes.find(url, url.origin === get.url.origin)
    proxy = route.proxy
    return route.dispatcher
  }
  const answer = await followUntil(findRoute, get, signal).catch((error: unknown): HttpAnswer => {
    // Not awaited: a connection that is being made may take its time to end.
    void routes.destroy().catch(() => undefined)
    return { kind: 'failed', ...describeFailure(error, signal) }
  })
  if (answer.kind !== 'failed' || proxy === undefined) return answer
  return { ...answer, message: `${answer.message} (through the proxy ${proxy})` }
}

/** undici itself heeds the signal only once it is connected. */
async function followUntil(...[findRoute, get, signal]: Parameters<typeof follow>): Promise<HttpAnswer> {
  signal.throwIfAborted()
  return await untilAborted(follow(findRoute, get, signal), signal)
}

async function follow(
  findRoute: (url: URL) => Promise<Dispatcher>,
  get: HttpGet,
  signal: AbortSignal,
): Promise<HttpAnswer> {
  let { url } = get
  for (let redirects = 0; redirects <= maxRedirects; redirects += 1) {
    const dispatcher = await findRoute(url)
    const response = await dispatcher.request({
      origin: url.origin,
      path: `${url.pathname}${url.search}`,
      method: 'GET',
      headers: headersFor(get, url),
      signal,
    })
    const { statusCode, headers, body } = response
    const location = firstHeader(headers, 'location')
    if (!redirectStatuses.includes(statusCode) || location === undefined)
      return await readAnswer(response, { sent: get.validators, nowMs: get.nowMs ?? 0 })
    discard(body)
    const next = URL.canParse(location, url) ? new URL(location, url) : undefined
    if (next === undefined || !['http:', 'https:'].includes(next.protocol))
      return { kind: 'failed', message: `the server answered ${statusCode} and leads to no web address` }
    if (next.protocol !== url.protocol) {
      const [from, to] = [url.protocol, next.protocol].map((protocol) => protocol.slice(0, -1))
      return {
        kind: 'failed',
        message: `the server answered ${statusCode} and leads from ${from} to ${to}`,
        ...(to === 'https' && { hint: 'write the URL with https' }),
      }
    }
    if (next.protocol === 'http:' && !isLoopbackHost(next.hostname) && get.allowHttp !== true) {
      const message = `the server answered ${statusCode} and leads off this host, unencrypted`
      return { kind: 'failed', message, hint: 'have it lead to https, or set allowHTTP: true' }
    }
    url = next
  }
  return { kind: 'failed', message: `the server redirects more than ${maxRedirects} times` }
}

/** The configured headers and credentials are sent only to the configured server. */
function headersFor(get: HttpGet, target: URL): Record<string, string | string[]> {
  const { url, headers, validators, waitSeconds } = get
  const wanted = new Map<string, string | string[]>([
    ['accept', 'application/yaml, application/json;q=0.9, */*;q=0.8'],
    ['user-agent', 'podd'],
  ])
  if (target.origin === url.origin) {
    if (url.username !== '') wanted.set('authorization', basicAuthorization(url))
    for (const [name, values] of Object.entries(headers)) wanted.set(name.toLowerCase(), [...values])
  }
  wanted.set('accept-encoding', 'gzip')
  if (validators?.etag !== undefined) wanted.set('if-none-match', validators.etag)
  if (validators?.lastModified !== undefined) wanted.set('if-modified-since', validators.lastModified)
  if (waitSeconds !== undefined) wanted.set('prefer', `wait=${waitSeconds}`)
  return Object.fromEntries(wanted)
}

function basicAuthorization({ username, password }: URL): string {
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return `Basic ${Buffer.from(pair).toString('base64')}`
}
