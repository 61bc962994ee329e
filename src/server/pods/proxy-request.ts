import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { errorMessage } from '../../base/errors.ts'
import { nodeHttp } from '../../base/node-http.ts'
import { ApiError } from '../requests/api-error.ts'
import type { ApiRequest, ApiResponse } from '../requests/api-request.ts'

export interface ProxiedTo {
  readonly scheme: 'http' | 'https'
  readonly host: string
  readonly port: number
  /** The path and query at the server, with a leading slash. */
  readonly path: string
  /** The prefix of the server's paths at the proxy, without a trailing slash. */
  readonly base: string
}

/** Headers that are not forwarded: those of one connection (RFC 9110, 7.6.1), and the client's credentials. */
const ownHeaders = new Set([
  'authorization',
  'connection',
  'content-length',
  'host',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

function isPassedOn(name: string, { connection = '' }: IncomingHttpHeaders): boolean {
  if (ownHeaders.has(name) || name.startsWith('impersonate-')) return false
  return !connection.split(',').some((named) => named.trim().toLowerCase() === name)
}

/**
 * Forwards a request, and streams the response back (`apimachinery/pkg/util/proxy`, UpgradeAwareHandler, 1.36): a pod's
 * certificate is not checked, and links in pages stay as they are. Throws ApiError where the server can't be reached.
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
  const { 'content-type': contentType = 'application/octet-stream', location } = answer.headers
  const told = Object.entries(answer.headers).flatMap(([name, value]) =>
    value === undefined || name === 'content-type' || !isPassedOn(name, answer.headers)
      ? []
      : [[name, value] as const],
  )
  return {
    status: answer.statusCode ?? 502,
    contentType,
    headers: {
      ...Object.fromEntries(told),
      ...(location !== undefined && { location: rewriteLocation(location, to) }),
    },
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
  const options = { host, port, path, method, headers: { ...headers, host: `${host}:${port}` }, signal }
  if (scheme === 'http') return nodeHttp.request({ ...options, agent: false })
  const https = process.getBuiltinModule('node:https')
  return https.request({ ...options, agent: false, rejectUnauthorized: false })
}

/** A redirect within the server stays within the proxy. */
function rewriteLocation(location: string, { scheme, host, port, base }: ProxiedTo): string {
  const origin = `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`
  const url = URL.parse(location, `${origin}/`)
  const isWithin = url !== null && url.origin === new URL(origin).origin
  const isAbsolute = location.startsWith('/') || URL.canParse(location)
  return isWithin && isAbsolute ? `${base}${url.pathname}${url.search}${url.hash}` : location
}
