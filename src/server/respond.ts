import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { WatchEvent } from '../api/routes.ts'
import { toStatusObject } from './api-error.ts'
import type { Unsubscribe } from './readers.ts'

/** A watcher that leaves so much unread is cut off; it may ask again and is told the present state. */
const watchBacklogBytes = 4 * 1024 * 1024

export function respondJson(response: ServerResponse, body: unknown, httpCode = 200): void {
  const text = `${JSON.stringify(body)}\n`
  response.writeHead(httpCode, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
  })
  response.end(text)
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
 * must not take it for the end of what there is.
 */
export async function respondStream(
  response: ServerResponse,
  chunks: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<void> {
  for await (const chunk of chunks) {
    if (signal.aborted) break
    if (!response.headersSent) response.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' })
    if (!response.write(chunk)) await once(response, 'drain', { signal })
  }
  if (signal.aborted) {
    response.destroy()
    return
  }
  if (!response.headersSent) response.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' })
  response.end()
}

export interface WatchSource<T> {
  list(): readonly T[]
  watch(listener: (change: WatchEvent<T>) => void): Unsubscribe
  /** Whether the client asked for this one. */
  accepts(object: T): boolean
}

/** What is there as ADDED lines, then each change, until the signal cuts it off. */
export function respondWatch<T>(
  response: ServerResponse,
  source: WatchSource<T>,
  signal: AbortSignal,
): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/json;stream=watch' })
  response.flushHeaders()
  const send = (change: WatchEvent<T>): void => {
    if (!source.accepts(change.object)) return
    response.write(`${JSON.stringify(change)}\n`)
    if (response.writableLength > watchBacklogBytes) response.destroy()
  }
  for (const object of source.list()) send({ type: 'ADDED', object })
  const unsubscribe = source.watch(send)
  return new Promise((resolve) => {
    const end = (): void => {
      unsubscribe()
      response.destroy()
      resolve()
    }
    if (signal.aborted) end()
    else signal.addEventListener('abort', end, { once: true })
  })
}
