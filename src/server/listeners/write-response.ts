import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { Clock } from '../../base/clock.ts'
import { PoddError } from '../../base/errors.ts'
import type { ApiResponse } from '../requests/api-request.ts'
import { statusResponse } from '../requests/status-response.ts'

/** After this a client that leaves its response unread is cut off; logs and upgraded connections may wait forever. */
const unreadMs = 60_000

/**
 * What a browser may make of a response that doesn't say otherwise, as the status page's own files do. Much of what podd
 * answers was written by containers (pages of servers in pods, logs, messages), and whatever runs with podd's origin
 * may do what its user may: so it is shown without scripts, forms, plugins, an origin, or anything from elsewhere.
 */
export const safeHeaders: Readonly<Record<string, string>> = {
  'content-security-policy':
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

/**
 * Sends a response as the client reads it: the next piece is taken only when there is room for it. When the signal is
 * aborted the connection is cut, so that the client doesn't mistake it for the end of the response. Resolves once
 * everything is handed to the connection, or the connection is gone. Returns the error to log: a defect, or one that
 * came after the response had begun.
 */
export async function writeResponse(
  response: ServerResponse,
  answer: ApiResponse,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<unknown> {
  const cut = (): void => void response.destroy()
  if (signal.aborted) {
    cut()
    return undefined
  }
  answer.cutOff?.addEventListener('abort', cut, { once: true })
  try {
    if (typeof answer.body === 'string') writeWhole(response, answer, answer.body)
    else await writePieces(response, answer, answer.body, { clock, signal })
    return undefined
  } catch (error) {
    if (signal.aborted || response.headersSent) {
      response.destroy()
      return signal.aborted || answer.cutOff?.aborted === true ? undefined : error
    }
    const told = statusResponse(error)
    writeWhole(response, told, told.body)
    return error instanceof PoddError ? undefined : error
  } finally {
    cutWhereUnread(response, clock)
  }
}

function writeWhole(
  response: ServerResponse,
  { status, contentType, headers }: ApiResponse,
  text: string,
): void {
  response.writeHead(status, {
    ...safeHeaders,
    ...headers,
    'content-type': contentType,
    'content-length': Buffer.byteLength(text),
  })
  response.end(text)
}

async function writePieces(
  response: ServerResponse,
  { status, contentType, headers, headFirst, mayWait }: ApiResponse,
  pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<void> {
  const sendHead = (): void => {
    if (!response.headersSent)
      response.writeHead(status, { ...safeHeaders, ...headers, 'content-type': contentType })
  }
  if (headFirst === true) {
    sendHead()
    response.flushHeaders()
  }
  for await (const piece of pieces) {
    if (signal.aborted) break
    sendHead()
    if (!response.write(piece)) await drained(response, signal, mayWait === true ? undefined : clock)
  }
  if (signal.aborted) {
    response.destroy()
    return
  }
  sendHead()
  response.end()
}

/** With a clock, waits no longer than a client may leave its response unread. */
async function drained(
  response: ServerResponse,
  signal: AbortSignal,
  clock: Clock | undefined,
): Promise<void> {
  const timer = clock?.startTimer(unreadMs, () => response.destroy())
  try {
    await once(response, 'drain', { signal })
  } finally {
    timer?.cancel()
  }
}

/** A complete response waits in memory until its client reads it. */
function cutWhereUnread(response: ServerResponse, clock: Clock): void {
  if (response.writableFinished || response.destroyed) return
  const timer = clock.startTimer(unreadMs, () => response.destroy())
  response.once('close', () => timer.cancel())
}
