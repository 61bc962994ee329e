import { ApiError } from '../requests/api-error.ts'
import { root } from '../requests/request.ts'
import type { ApiRequest } from '../requests/request.ts'

/** Host names of a page on this host, or of a tunnel to it. */
const localHost = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/iu

type Headers = ApiRequest['headers']

/**
 * Rejects requests that a page of another site makes through a browser. A browser sends a client certificate with every
 * request, and every user of a tunnel to the unix socket is root; a token is sent only by the page that was given it.
 * Clients other than browsers don't send an origin, and pass. Reads pass too, but for those of proxies
 * (`refuseProxied`): a browser shows another site no response.
 * @throws ApiError Forbidden
 */
export function refuseForeignSite(request: ApiRequest): void {
  const { method, headers, identity } = request
  // No part of podd is a service worker: it would come between podd and all that its users see.
  if (headers['service-worker'] !== undefined)
    throw new ApiError(403, 'podd serves no script of a service worker')
  const { host = '', upgrade } = headers
  // DNS rebinding: a foreign name that resolves to this host makes a foreign page the same site.
  if (identity === root && isBrowser(headers) && !localHost.test(host))
    throw new ApiError(403, `browsers reach podd's socket as localhost, not as ${JSON.stringify(host)}`)
  if (identity.byToken === true) return
  // A page can't add this header to cross-site requests: a proxy of the user's own sends it, as dashboards do. But a proxy
  // also passes on what pages of any site send to it without asking first.
  if (headers['x-forwarded-for'] !== undefined && !(method === 'POST' && hasSimpleType(headers))) return
  if (isForeign(headers) && (method !== 'GET' || upgrade !== undefined))
    throw new ApiError(403, 'the request comes from a page of another site')
}

/**
 * Rejects requests of browsers to servers behind a proxy unless a user or a page of podd's own makes them: such a server
 * may do something for a GET. A page that a server behind the proxy sent counts as another site, too. Browsers that
 * don't say where a request comes from (`Sec-Fetch-Site`) are rejected: old ones, and all of them where podd is reached
 * by plain HTTP under another name than localhost.
 * @throws ApiError Forbidden
 */
export function refuseProxied(request: ApiRequest): void {
  const { headers, identity } = request
  if (identity.byToken === true || !isBrowser(headers)) return
  const hint =
    'Open the address itself in an up-to-date browser, over TLS or at localhost, or use `podd port-forward`, which has no such limits.'
  const { 'sec-fetch-site': site, 'sec-fetch-mode': mode, 'sec-fetch-dest': destination } = headers
  // Dashboards fetch through a proxy of the user's own; a link of another site is a navigation, or asks for no answer.
  if (headers['x-forwarded-for'] !== undefined && (mode === 'cors' || mode === 'same-origin')) return
  if (site === undefined) throw new ApiError(403, 'the browser does not say which site asks', hint)
  if (isForeign(headers)) throw new ApiError(403, 'the request comes from a page of another site', hint)
  // Never a script or a frame of the status page, whatever gets into it.
  if (destination !== undefined && destination !== 'document' && destination !== 'empty')
    throw new ApiError(403, `what servers in pods send is no ${destination} of another page`, hint)
}

/** Whether a request comes from a browser, in which pages of any site run. A page can't prevent all of these headers. */
export function isBrowser(headers: Headers): boolean {
  if (headers['sec-fetch-site'] !== undefined || headers.origin !== undefined) return true
  return headers['accept-language'] !== undefined || headers['user-agent']?.startsWith('Mozilla/') === true
}

/** Whether a page of another site makes the request, as far as the browser says. */
function isForeign({ host = '', origin, 'sec-fetch-site': site }: Headers): boolean {
  if (site !== undefined) return site !== 'same-origin' && site !== 'none'
  // Browsers send the site to trustworthy addresses alone, and the origin with all requests but reads. That of a page
  // in a sandbox is `null`.
  if (origin === undefined) return false
  const from = URL.parse(origin)
  return from === null || from.host !== URL.parse(`${from.protocol}//${host}`)?.host
}

/** Whether a browser lets a page of another site send a POST with this type of content without asking first (CORS). */
function hasSimpleType({ 'content-type': type = '' }: Headers): boolean {
  const essence = type.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  return ['', 'text/plain', 'multipart/form-data', 'application/x-www-form-urlencoded'].includes(essence)
}
