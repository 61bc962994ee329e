import { ApiError } from '../requests/api-error.ts'
import type { ApiRequest } from '../requests/api-request.ts'
import { root } from '../requests/identity.ts'

/** What a page on this host, or a tunnel to it, is called. */
const localHost = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/iu

/**
 * Refuses what a page of another site has a browser do. A browser sends a client certificate with whatever a page asks
 * for, and every user of a tunnel to the unix socket is root; a token is sent by the page alone that was given it.
 * Clients that are no browsers don't say where a request comes from, and pass. What only reads passes too: a browser
 * shows no answer to another site.
 * @throws ApiError Forbidden
 */
export function refuseForeignSite({ method, headers, identity }: ApiRequest): void {
  const { authorization, host = '', upgrade } = headers
  const site = headers['sec-fetch-site']
  if (site === undefined || authorization !== undefined) return
  // A name that leads here by somebody else's DNS makes a foreign page the same site.
  if (identity === root && !localHost.test(host))
    throw new ApiError(403, `browsers reach podd's socket as localhost, not as ${JSON.stringify(host)}`)
  // No page can add this to what it has a browser send elsewhere: a proxy of the user's own asks, as dashboards do.
  if (headers['x-forwarded-for'] !== undefined) return
  const isOwn = site === 'same-origin' || site === 'none'
  if (!isOwn && (method !== 'GET' || upgrade !== undefined))
    throw new ApiError(403, 'the page of another site asked for this')
}
