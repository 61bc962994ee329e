import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { Clock } from '../base/clock.ts'
import { toStatusObject } from './api-error.ts'

export function respondJson(response: ServerResponse, body: unknown, httpCode = 200): void {
  const text = `${JSON.stringify(body)}\n`
  response.writeHead(httpCode, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
  })
  response.end(text)
}

/** A list is sent in pieces of about this size. */
const listPieceBytes = 16 * 1024

export interface ObjectList {
  readonly apiVersion: string
  readonly kind: string
  readonly items: readonly unknown[]
}

/** How long a client may take nothing of what waits for it. */
export interface Patience {
  readonly clock: Clock
  readonly unreadMs: number
}

/** Sends a list as the client reads it: never all of it stands in memory as text. Who doesn't read it is cut off. */
export function respondList(
  response: ServerResponse,
  list: ObjectList,
  { signal, ...patience }: Patience & { readonly signal: AbortSignal },
): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/json' })
  return respondStream(response, listPieces(list), signal, patience)
}

function* listPieces({ items, ...head }: ObjectList): Generator<Uint8Array, void> {
  const encoder = new TextEncoder()
  let piece = `${JSON.stringify(head).slice(0, -1)},"items":[`
  for (const [index, item] of items.entries()) {
    piece += `${index === 0 ? '' : ','}${JSON.stringify(item)}`
    if (piece.length < listPieceBytes) continue
    yield encoder.encode(piece)
    piece = ''
  }
  yield encoder.encode(`${piece}]}\n`)
}

/** After the first byte of a stream there is no way to tell of an error but to cut the connection. */
export function respondError(response: ServerResponse, error: unknown): void {
  if (response.headersSent) {
    response.destroy()
    return
  }
  const status = toStatusObject(error)
  respondJson(response, status, status.code)
}

/**
 * Sends chunks as they come and takes the next one only when the client has room for it. Nothing is sent before
 * the first chunk (or the end), so that an error until then is still told. What the signal ends is cut off: a client
 * must not take it for the end of what there is. Without `patience` a client may take its time for ever.
 */
export async function respondStream(
  response: ServerResponse,
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  signal: AbortSignal,
  patience?: Patience,
): Promise<void> {
  for await (const chunk of chunks) {
    if (signal.aborted) break
    if (!response.headersSent) response.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' })
    if (!response.write(chunk)) await drained(response, signal, patience)
  }
  if (signal.aborted) {
    response.destroy()
    return
  }
  if (!response.headersSent) response.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' })
  response.end()
}

async function drained(response: ServerResponse, signal: AbortSignal, patience?: Patience): Promise<void> {
  const timer = patience?.clock.startTimer(patience.unreadMs, () => response.destroy())
  try {
    await once(response, 'drain', { signal })
  } finally {
    timer?.cancel()
  }
}
