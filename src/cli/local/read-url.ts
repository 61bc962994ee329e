import { PoddError } from '../../base/errors.ts'
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

function parse(name: string): ReturnType<typeof parseSourceUrl> {
  try {
    return parseSourceUrl(name)
  } catch (error) {
    throw new PoddError('UNREADABLE', `${JSON.stringify(name)} is no URL`, { cause: error })
  }
}
