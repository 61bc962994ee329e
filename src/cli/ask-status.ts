import type { DaemonStatus } from '../api/routes.ts'
import type { Clock } from '../base/clock.ts'
import { apiSocketPath } from '../config/places.ts'
import { ApiClient } from './client.ts'

/** How long a daemon may take to answer: one that is stopped, or hangs, never does. */
const answerMs = 5_000

/** What the daemon of a run directory says of itself; throws as ApiClient does, INTERRUPTED where no answer comes. */
export async function askStatus(runDir: string, signal: AbortSignal, clock: Clock): Promise<DaemonStatus> {
  const late = new AbortController()
  const timer = clock.startTimer(answerMs, () => late.abort())
  try {
    const until = AbortSignal.any([signal, late.signal])
    return await new ApiClient(apiSocketPath(runDir)).get<DaemonStatus>('/podd/v1/status', until)
  } finally {
    timer.cancel()
  }
}
