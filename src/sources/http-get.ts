import type { Dispatcher } from 'undici'
import { PoddError, errorCode, errorMessage } from '../base/errors.ts'
import { maxSourceBytes } from '../pod/decode/decode-documents.ts'
import type { HttpRoute } from './http-routes.ts'

const maxRedirects = 5
const redirectStatuses = [301, 302, 303, 307, 308]
/** What the server said of the copy it sent last. */
export interface Validators {
  readonly etag?: string | undefined
  readonly lastModified?: string | undefined
}

export interface HttpGet {
  readonly url: URL
  readonly headers: Readonly<Record<string, readonly string[]>>
  /** Of the copy that podd has, to ask only whether it is current. */
  readonly validators: Validators | undefined
}

/** How a request ended. */
export type HttpAnswer =
  | { readonly kind: 'content'; readonly bytes: Uint8Array; readonly validators: Validators | undefined }
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'failed'; readonly message: string; readonly hint?: string | undefined }

/** Leads to servers. */
interface Routes {
  find(url: URL): Promise<HttpRoute>
}

type ResponseHeaders = Dispatcher.ResponseData['headers']

/** One GET, with a bounded number of redirects and a bounded body. Never rejects. */
export async function getOnce(routes: Routes, get: HttpGet, signal: AbortSignal): Promise<HttpAnswer> {
  let proxy: string | undefined
  const findRoute = async (url: URL): Promise<Dispatcher> => {
    const route = await routes.find(url)
    proxy = route.proxy
    return route.dispatcher
  }
  const answer = await follow(findRoute, get, signal).catch((error: unknown) => {
    return { kind: 'failed', ...describeFailure(error, signal) } as const
  })
  if (answer.kind !== 'failed' || proxy === undefined) return answer
  return { ...answer, message: `${answer.message} (through the proxy ${proxy})` }
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
    const location = first(headers, 'location')
    if (!redirectStatuses.includes(statusCode) || location === undefined) {
      return await readAnswer(response, get.validators)
    }
    body.on('error', () => undefined).destroy()
    const next = URL.canParse(location, url) ? new URL(location, url) : undefined
    if (next === undefined || !['http:', 'https:'].includes(next.protocol)) {
      return { kind: 'failed', message: `the server answered ${statusCode} and leads to no web address` }
    }
    if (url.protocol === 'https:' && next.protocol === 'http:') {
      return { kind: 'failed', message: `the server answered ${statusCode} and leads from https to http` }
    }
    url = next
  }
  return { kind: 'failed', message: `the server redirects more than ${maxRedirects} times` }
}

/** The configured headers and credentials go to the configured server and to no other. */
function headersFor({ url, headers, validators }: HttpGet, target: URL): Record<string, string | string[]> {
  const wanted = new Map<string, string | string[]>([
    ['accept', 'application/yaml, application/json;q=0.9, */*;q=0.8'],
    ['user-agent', 'podd'],
  ])
  if (target.origin === url.origin) {
    if (url.username !== '') wanted.set('authorization', basicAuthorization(url))
    for (const [name, values] of Object.entries(headers)) wanted.set(name.toLowerCase(), [...values])
  }
  wanted.set('accept-encoding', 'identity')
  if (validators?.etag !== undefined) wanted.set('if-none-match', validators.etag)
  if (validators?.lastModified !== undefined) wanted.set('if-modified-since', validators.lastModified)
  return Object.fromEntries(wanted)
}

function basicAuthorization({ username, password }: URL): string {
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return `Basic ${Buffer.from(pair).toString('base64')}`
}

async function readAnswer(
  { statusCode, headers, body }: Dispatcher.ResponseData,
  sent: Validators | undefined,
): Promise<HttpAnswer> {
  if (statusCode === 304 && sent !== undefined) {
    await body.dump()
    return { kind: 'unchanged' }
  }
  if (statusCode !== 200) {
    body.on('error', () => undefined).destroy()
    const isRefused = statusCode === 401 || statusCode === 403
    const hint = isRefused ? 'check the credentials in the URL or the headers' : undefined
    return { kind: 'failed', message: `the server answered ${statusCode}`, hint }
  }
  const encoding = first(headers, 'content-encoding')
  if (encoding !== undefined && encoding !== 'identity') {
    body.on('error', () => undefined).destroy()
    return { kind: 'failed', message: `the server sent ${encoding}, which was not asked for` }
  }
  const chunks: Uint8Array[] = []
  let sizeBytes = 0
  for await (const chunk of body) {
    if (!(chunk instanceof Uint8Array)) continue
    sizeBytes += chunk.byteLength
    if (sizeBytes > maxSourceBytes) {
      body.on('error', () => undefined).destroy()
      return { kind: 'failed', message: `the answer is larger than ${maxSourceBytes / 2 ** 20} MiB` }
    }
    chunks.push(chunk)
  }
  const etag = first(headers, 'etag')
  const lastModified = first(headers, 'last-modified')
  const validators = etag === undefined && lastModified === undefined ? undefined : { etag, lastModified }
  return { kind: 'content', bytes: Buffer.concat(chunks), validators }
}

function first(headers: ResponseHeaders, name: string): string | undefined {
  const value = headers[name]
  return typeof value === 'string' ? value : value?.[0]
}

const authorityHint = `make this host trust its authority (update-ca-certificates, or SSL_CERT_FILE in podd's environment), and restart podd`
const untrusted = `no authority that this host trusts has signed the server's certificate`

interface Failure {
  readonly message: string
  readonly hint?: string
}

/** What may be wrong with TLS, by the codes of OpenSSL (X509_STORE_CTX_get_error(3)) and Node. */
const tlsFailures: Readonly<Record<string, Failure>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: { message: untrusted, hint: authorityHint },
  SELF_SIGNED_CERT_IN_CHAIN: { message: untrusted, hint: authorityHint },
  UNABLE_TO_GET_ISSUER_CERT: { message: untrusted, hint: authorityHint },
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: { message: untrusted, hint: authorityHint },
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: { message: untrusted, hint: authorityHint },
  CERT_HAS_EXPIRED: {
    message: "the server's certificate has expired",
    hint: 'renew it; or is the clock of this host wrong?',
  },
  CERT_NOT_YET_VALID: {
    message: "the server's certificate is not valid yet",
    hint: 'is the clock of this host wrong?',
  },
  ERR_TLS_CERT_ALTNAME_INVALID: {
    message: "the server's certificate is for another name",
    hint: 'write the URL with a name that the certificate bears',
  },
  ERR_SSL_WRONG_VERSION_NUMBER: { message: 'the server does not speak TLS', hint: 'is it http:// there?' },
}

const failures: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the server refuses connections',
  ECONNRESET: 'the server broke the connection off',
  UND_ERR_SOCKET: 'the server broke the connection off',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'the answer is shorter or longer than the server said',
  ENOTFOUND: 'the host name is not known',
  EAI_AGAIN: 'the host name cannot be looked up',
  ENETUNREACH: 'the network is unreachable',
  EHOSTUNREACH: 'the host is unreachable',
  UND_ERR_CONNECT_TIMEOUT: 'the server does not answer',
}

function describeFailure(error: unknown, signal: AbortSignal): Failure {
  if (signal.aborted) return { message: errorMessage(signal.reason) }
  const code = errorCode(error) ?? ''
  if (error instanceof PoddError) return { message: error.message, ...(error.hint && { hint: error.hint }) }
  const message = failures[code] ?? `the request failed: ${errorMessage(error)}`
  return tlsFailures[code] ?? { message }
}
