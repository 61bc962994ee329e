import type { Readable } from 'node:stream'
import { errorCode, errorMessage, PoddError } from '../../base/errors.ts'
import { isHeaderValue, isLoopbackHost } from '../../base/http.ts'
import { untilAborted } from '../../base/waits.ts'
import { maxSourceBytes } from '../../pod/decode/decode-documents.ts'
import { readText, unusable } from './http-routes.ts'
import type { HttpRoute, RoutedResponse } from './http-routes.ts'

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
  const findRoute = async (url: URL): Promise<HttpRoute> => {
    const route = await routes.find(url, url.origin === get.url.origin)
    proxy = route.proxy
    return route
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
  findRoute: (url: URL) => Promise<HttpRoute>,
  get: HttpGet,
  signal: AbortSignal,
): Promise<HttpAnswer> {
  let { url } = get
  for (let redirects = 0; redirects <= maxRedirects; redirects += 1) {
    const route = await findRoute(url)
    const response = await route.request({ url, method: 'GET', headers: headersFor(get, url), signal })
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

interface HttpPost {
  readonly url: URL
  readonly headers: HttpGet['headers']
  /** JSON, packed with gzip. */
  readonly body: Uint8Array
}

/** One POST; redirects are not followed. Gives why it was not taken; undefined where it was. Never rejects. */
export async function postOnce(
  routes: Routes,
  { url, headers, body }: HttpPost,
  signal: AbortSignal,
): Promise<Failure | undefined> {
  let proxy: string | undefined
  const send = async (): Promise<Failure | undefined> => {
    const route = await routes.find(url, true)
    proxy = route.proxy
    const response = await route.request({
      url,
      method: 'POST',
      headers: {
        ...headersFor({ url, headers, validators: undefined }, url),
        'content-type': 'application/json',
        'content-encoding': 'gzip',
      },
      body,
      signal,
    })
    discard(response.body)
    const { statusCode } = response
    if (statusCode >= 200 && statusCode < 300) return undefined
    return refusal(statusCode)
  }
  try {
    signal.throwIfAborted()
    return await untilAborted(send(), signal)
  } catch (error) {
    // As with getOnce.
    void routes.destroy().catch(() => undefined)
    const failure = describeFailure(error, signal)
    return proxy === undefined
      ? failure
      : { ...failure, message: `${failure.message} (through the proxy ${proxy})` }
  }
}

function refusal(statusCode: number): Failure {
  const message = `the server answered ${statusCode}`
  const isRefused = statusCode === 401 || statusCode === 403
  return isRefused ? { message, hint: 'check the credentials in the URL or the headers' } : { message }
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

/** The server's validators of the copy it last sent. */
export interface Validators {
  readonly etag?: string | undefined
  readonly lastModified?: string | undefined
}

/** How a request ended. */
export type HttpAnswer = (
  | { readonly kind: 'content'; readonly bytes: Uint8Array; readonly validators: Validators | undefined }
  | { readonly kind: 'unchanged' }
  | {
      readonly kind: 'failed'
      readonly message: string
      readonly hint?: string | undefined
      /** The server gave content without a good signature. */
      readonly isUnverified?: boolean
    }
) & {
  /** The server delays a response until there is something new: `Preference-Applied: wait` (RFC 7240). */
  readonly waits?: boolean
  /** When the server wants the next request at the earliest: `Retry-After`. */
  readonly retryAfterMs?: number | undefined
}

/**
 * Reads a response with a bounded body, compressed or not.
 * @param nowMs wall time, for a Retry-After that is a date
 * @throws what the connection or decompression throws
 */
async function readAnswer(
  { statusCode, headers, body }: RoutedResponse,
  { sent, nowMs }: { readonly sent: Validators | undefined; readonly nowMs: number },
): Promise<HttpAnswer> {
  const waits = /(?:^|[\s,;])wait(?:$|[\s,;=])/u.test(firstHeader(headers, 'preference-applied') ?? '')
  if (statusCode === 304 && sent !== undefined) {
    discard(body)
    return { kind: 'unchanged', waits }
  }
  if (statusCode !== 200) {
    discard(body)
    const retryAfterMs = parseRetryAfter(firstHeader(headers, 'retry-after'), nowMs)
    return { kind: 'failed', ...refusal(statusCode), retryAfterMs }
  }
  if (firstHeader(headers, 'content-type')?.startsWith('text/event-stream') === true) {
    discard(body)
    return { kind: 'failed', message: 'the server sends a stream of events', hint: streamHint }
  }
  // `x-gzip` is an older name of it (RFC 9110, 8.4.1.3).
  const encoding =
    firstHeader(headers, 'content-encoding')?.toLowerCase().replace('x-gzip', 'gzip') ?? 'identity'
  if (encoding !== 'identity' && encoding !== 'gzip') {
    discard(body)
    return { kind: 'failed', message: `the server sent ${encoding}, which was not asked for` }
  }
  const bytes = encoding === 'gzip' ? await readPacked(body) : await readBytes(body)
  if (bytes === undefined)
    return { kind: 'failed', message: `the answer is larger than ${maxSourceBytes / 2 ** 20} MiB` }
  const etag = firstHeader(headers, 'etag')
  const lastModified = firstHeader(headers, 'last-modified')
  const validators = etag === undefined && lastModified === undefined ? undefined : { etag, lastModified }
  return { kind: 'content', bytes, validators, waits }
}

const streamHint = 'answer with the manifests; to push changes, hold the answer back (docs/SOURCES.md)'

/** The first value of a header. */
function firstHeader(headers: RoutedResponse['headers'], name: string): string | undefined {
  const value = headers[name]
  return typeof value === 'string' ? value : value?.[0]
}

/** Ends a response whose body is not read. */
function discard(body: Readable): void {
  body.on('error', () => undefined).destroy()
}

/** The compressed body has the same limit. */
async function readPacked(body: Readable): Promise<Uint8Array | undefined> {
  const { createGunzip } = await import('node:zlib')
  const unpacked = createGunzip()
  let packedBytes = 0
  body.on('data', (chunk: Uint8Array) => {
    packedBytes += chunk.byteLength
    if (packedBytes > maxSourceBytes) body.destroy()
  })
  body.on('error', (error) => unpacked.destroy(error))
  body.pipe(unpacked)
  try {
    return await readBytes(unpacked)
  } finally {
    discard(body)
  }
}

/** Undefined where the body is too large; the rest isn't read. */
async function readBytes(stream: Readable): Promise<Uint8Array | undefined> {
  const chunks: Uint8Array[] = []
  let sizeBytes = 0
  for await (const chunk of stream) {
    if (!(chunk instanceof Uint8Array)) continue
    sizeBytes += chunk.byteLength
    if (sizeBytes > maxSourceBytes) {
      stream.on('error', () => undefined).destroy()
      return undefined
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

const longestRetryAfterMs = 3_600_000

/** Seconds, or a date (RFC 9110, 10.2.3); an hour at most. */
export function parseRetryAfter(text: string | undefined, nowMs: number): number | undefined {
  if (text === undefined) return undefined
  const delayMs = /^\d+$/u.test(text) ? Number(text) * 1000 : Date.parse(text) - nowMs
  return Number.isNaN(delayMs) ? undefined : Math.min(Math.max(delayMs, 0), longestRetryAfterMs)
}

/** Why a request failed. */
export interface Failure {
  readonly message: string
  readonly hint?: string
}

const authorityHint = `make this host trust its authority (update-ca-certificates, or SSL_CERT_FILE in podd's environment), and restart podd`
const untrusted = `no authority that this host trusts has signed the server's certificate`

/** The causes of TLS failures, by the codes of OpenSSL (X509_STORE_CTX_get_error(3)) and Node. */
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
  ENOENT: 'there is no such socket',
  Z_DATA_ERROR: 'the answer cannot be unpacked',
  Z_BUF_ERROR: 'the answer cannot be unpacked',
  ENOTFOUND: 'the host name is not known',
  EAI_AGAIN: 'the host name cannot be looked up',
  ENETUNREACH: 'the network is unreachable',
  EHOSTUNREACH: 'the host is unreachable',
  UND_ERR_CONNECT_TIMEOUT: 'the server does not answer',
}

/** The message for a failed request. */
function describeFailure(error: unknown, signal: AbortSignal): Failure {
  if (signal.aborted) return { message: errorMessage(signal.reason) }
  const code = errorCode(error) ?? ''
  if (error instanceof PoddError) return { message: error.message, ...(error.hint && { hint: error.hint }) }
  const message = failures[code] ?? `the request failed: ${errorMessage(error)}`
  return tlsFailures[code] ?? { message }
}

/** Headers whose values are in files, which may change: paths by header name. */
export type HeaderFiles = Readonly<Record<string, string>>

/** The headers of a request. Throws PoddError SOURCE_FILE. */
export async function readHeaders(
  headers: HttpGet['headers'],
  files: HeaderFiles,
): Promise<HttpGet['headers']> {
  const read = await Promise.all(
    Object.entries(files).map(async ([name, path]): Promise<[string, readonly string[]]> => {
      const value = (await readText(path)).trim()
      if (!isHeaderValue(value)) throw unusable(path, new Error('it is not a single line of text'))
      return [name, [value]]
    }),
  )
  return { ...headers, ...Object.fromEntries(read) }
}
