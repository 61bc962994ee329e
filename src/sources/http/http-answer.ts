import type { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import { maxSourceBytes } from '../../pod/decode/decode-documents.ts'

/** The server's validators of the copy it last sent. */
export interface Validators {
  readonly etag?: string | undefined
  readonly lastModified?: string | undefined
}

/** How a request ended. */
export type HttpAnswer = (
  | { readonly kind: 'content'; readonly bytes: Uint8Array; readonly validators: Validators | undefined }
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'failed'; readonly message: string; readonly hint?: string | undefined }
) & {
  /** The server delays a response until there is something new: `Preference-Applied: wait` (RFC 7240). */
  readonly waits?: boolean
  /** When the server wants the next request at the earliest: `Retry-After`. */
  readonly retryAfterMs?: number | undefined
}

type ResponseHeaders = Dispatcher.ResponseData['headers']
type Body = Dispatcher.ResponseData['body']

/**
 * Reads a response with a bounded body, compressed or not.
 * @param nowMs wall time, for a Retry-After that is a date
 * @throws what the connection or decompression throws
 */
export async function readAnswer(
  { statusCode, headers, body }: Dispatcher.ResponseData,
  { sent, nowMs }: { readonly sent: Validators | undefined; readonly nowMs: number },
): Promise<HttpAnswer> {
  const waits = /(?:^|[\s,;])wait(?:$|[\s,;=])/u.test(firstHeader(headers, 'preference-applied') ?? '')
  if (statusCode === 304 && sent !== undefined) {
    await body.dump()
    return { kind: 'unchanged', waits }
  }
  if (statusCode !== 200) {
    discard(body)
    const isRefused = statusCode === 401 || statusCode === 403
    const hint = isRefused ? 'check the credentials in the URL or the headers' : undefined
    const retryAfterMs = parseRetryAfter(firstHeader(headers, 'retry-after'), nowMs)
    return { kind: 'failed', message: `the server answered ${statusCode}`, hint, retryAfterMs }
  }
  if (firstHeader(headers, 'content-type')?.startsWith('text/event-stream') === true) {
    discard(body)
    return { kind: 'failed', message: 'the server sends a stream of events', hint: streamHint }
  }
  const encoding = firstHeader(headers, 'content-encoding') ?? 'identity'
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
export function firstHeader(headers: ResponseHeaders, name: string): string | undefined {
  const value = headers[name]
  return typeof value === 'string' ? value : value?.[0]
}

/** Ends a response whose body is not read. */
export function discard(body: Body): void {
  body.on('error', () => undefined).destroy()
}

/** The compressed body has the same limit. */
async function readPacked(body: Body): Promise<Uint8Array | undefined> {
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
