import type { Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { errorMessage, PoddError } from '../../base/errors.ts'
import { getOnce } from '../../sources/http/http-get.ts'
import { HttpRoutes } from '../../sources/http/http-routes.ts'
import { parseSourceUrl, showUrl } from '../../base/http.ts'
import { answerDeadline } from '../../sources/source.ts'
import type { VerbContext } from '../arguments/verb.ts'

const timeoutMs = 30_000

/** Reads a URL as podd's source does, within the same bounds. Throws PoddError UNREADABLE. */
export async function readUrl(name: string, { env, clock, signal }: VerbContext): Promise<Uint8Array> {
  const { url, socketPath } = parse(name)
  const routes = new HttpRoutes(env, socketPath)
  using deadline = answerDeadline(clock, timeoutMs)
  try {
    const request = { url, headers: {}, validators: undefined, nowMs: clock.wallMs(), allowHttp: true }
    const answer = await getOnce(routes, request, AbortSignal.any([signal, deadline.signal]))
    signal.throwIfAborted()
    if (answer.kind === 'content') return answer.bytes
    const { message, hint } = answer.kind === 'failed' ? answer : { message: 'nothing came', hint: undefined }
    throw new PoddError('UNREADABLE', `cannot read ${showUrl(name)}: ${message}`, { hint })
  } finally {
    await routes.destroy()
  }
}

/** The longest that one file may take to come, and how often its server may lead elsewhere. */
const fileTimeoutMs = 3_600_000
const maxRedirects = 5

/**
 * Writes what a URL has into a stream, however long it is: what comes has to be verified. A URL with https leads to others with
 * https alone. Throws PoddError UNREADABLE.
 */
export async function saveUrl(
  name: string,
  to: Writable,
  { env, clock, signal }: VerbContext,
): Promise<void> {
  let { url } = parse(name)
  const routes = new HttpRoutes(env)
  using deadline = answerDeadline(clock, fileTimeoutMs)
  const either = AbortSignal.any([signal, deadline.signal])
  const refuse = (message: string, cause?: unknown): PoddError =>
    new PoddError('UNREADABLE', `cannot read ${showUrl(name)}: ${message}`, { cause })
  try {
    for (let redirects = 0; redirects <= maxRedirects; redirects += 1) {
      const route = await routes.find(url)
      const { statusCode, headers, body } = await route.request({ url, method: 'GET', signal: either })
      if (statusCode === 200) return await pipeline(body, to, { signal: either })
      body.on('error', () => undefined).destroy()
      const { location } = headers
      if (statusCode < 300 || statusCode > 399 || typeof location !== 'string')
        throw refuse(`the server answered ${statusCode}`)
      const next = new URL(location, url)
      if (next.protocol !== url.protocol) throw refuse(`it leads from ${url.protocol} to ${next.protocol}`)
      url = next
    }
    throw refuse(`the server redirects more than ${maxRedirects} times`)
  } catch (error) {
    signal.throwIfAborted()
    throw error instanceof PoddError ? error : refuse(errorMessage(error), error)
  } finally {
    await routes.destroy()
  }
}

function parse(name: string): ReturnType<typeof parseSourceUrl> {
  try {
    return parseSourceUrl(name)
  } catch (error) {
    throw new PoddError('UNREADABLE', `${JSON.stringify(name)} is no URL`, { cause: error })
  }
}
