import { type Clock, sleepUnlessAborted } from '../../base/clock.ts'
import { errorCode } from '../../base/errors.ts'
import type { ApiClient } from './client.ts'
import { LogPosition } from './log-position.ts'

/** How long a restarting daemon may be unavailable, and the interval of retries. */
const awayMs = 60_000
const againMs = 500

/** The responses of a daemon that is stopping or starting. */
const away: readonly (string | undefined)[] = [
  'DAEMON_GONE',
  'DAEMON_NOT_RUNNING',
  'DAEMON_SILENT',
  'API_ServiceUnavailable',
]

export interface FollowedLog {
  /** The path of the log, without its query. */
  readonly path: string
  readonly query: URLSearchParams
  readonly signal: AbortSignal
  readonly notify: (line: string) => void
}

/**
 * Follows a log over restarts of the daemon: each line is printed once, and no kept line is lost. Throws the daemon's
 * errors, and PoddError where the daemon is unavailable for a minute.
 */
export async function* followLog(
  client: Pick<ApiClient, 'stream'>,
  clock: Clock,
  { path, query, signal, notify }: FollowedLog,
): AsyncGenerator<Uint8Array, void> {
  const position = new LogPosition(query.has('timestamps'))
  const asked = new URLSearchParams(query)
  asked.set('timestamps', 'true')
  let goneMs: number | undefined
  for (;;) {
    try {
      for await (const chunk of client.stream(`${path}?${asked.toString()}`, signal)) {
        goneMs = undefined
        const bytes = position.push(chunk)
        if (bytes.length > 0) yield bytes
      }
      return
    } catch (error) {
      const nowMs = clock.monotonicMs()
      // Before the first output an error is thrown at once.
      const isFirst =
        goneMs === undefined && position.time === undefined && errorCode(error) !== 'DAEMON_GONE'
      if (isFirst || signal.aborted || !away.includes(errorCode(error))) throw error
      if (goneMs === undefined) notify('podd is unavailable; waiting for it to return')
      goneMs ??= nowMs
      if (nowMs - goneMs >= awayMs) throw error
    }
    await sleepUnlessAborted(clock, againMs, signal)
    if (signal.aborted) return
    position.resume()
    if (position.time === undefined) continue
    for (const name of ['tailLines', 'sinceSeconds']) asked.delete(name)
    asked.set('sinceTime', position.time)
  }
}
