import type { Clock } from '../../base/clock.ts'
import { errorCode } from '../../base/errors.ts'
import type { ApiClient } from './client.ts'
import { LogPosition } from './log-position.ts'

/** How long a daemon that was restarted may be away, and how often to look. */
const awayMs = 60_000
const againMs = 500

/** What a daemon that ends or begins gives as an answer. */
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
 * Follows a log over restarts of the daemon: each line is given once, and none is lost that is still kept. Throws what the
 * daemon says, and PoddError of a daemon that stays away for a minute.
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
      // Whoever has seen nothing yet is told at once.
      const isFirst =
        goneMs === undefined && position.time === undefined && errorCode(error) !== 'DAEMON_GONE'
      if (isFirst || signal.aborted || !away.includes(errorCode(error))) throw error
      if (goneMs === undefined) notify('podd has gone; waiting for it to come back')
      goneMs ??= nowMs
      if (nowMs - goneMs >= awayMs) throw error
    }
    await clock.sleep(againMs, signal).catch(() => {})
    if (signal.aborted) return
    position.resume()
    if (position.time === undefined) continue
    for (const name of ['tailLines', 'sinceSeconds']) asked.delete(name)
    asked.set('sinceTime', position.time)
  }
}
