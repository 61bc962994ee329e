import { ApiError } from '../requests/api-error.ts'
import type { ApiRequest } from '../requests/api-request.ts'
import { root } from '../requests/identity.ts'

/** Host names of a page on this host, or of a tunnel to it. */
const localHost = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/iu

/**
 * Rejects requests that a page of another site makes through a browser. A browser sends a client certificate with every
 * request, and every user of a tunnel to the unix socket is root; a token is sent only by the page that was given it.
 * Clients other than browsers don't send an origin, and pass. Reads pass too: a browser shows another site no response.
 * @throws ApiError Forbidden
 */
export function refuseForeignSite({ method, headers, identity }: ApiRequest): void {
  const { authorization, host = '', upgrade } = headers
  const site = headers['sec-fetch-site']
  if (site === undefined || authorization !== undefined) return
  // DNS rebinding: a foreign name that resolves to this host makes a foreign page the same site.
  if (identity === root && !localHost.test(host))
    throw new ApiError(403, `browsers reach podd's socket as localhost, not as ${JSON.stringify(host)}`)
  // A page can't add this header to cross-site requests: a proxy of the user's own sends it, as dashboards do.
  if (headers['x-forwarded-for'] !== undefined) return
  const isOwn = site === 'same-origin' || site === 'none'
  if (!isOwn && (method !== 'GET' || upgrade !== undefined))
    throw new ApiError(403, 'the request comes from a page of another site')
}
