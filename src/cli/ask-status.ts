import type { DaemonStatus } from '../api/routes.ts'
import type { Clock } from '../base/clock.ts'
import { apiSocketPath } from '../config/places.ts'
import { ApiClient } from './client.ts'

/** What the daemon of a run directory says of itself; throws as ApiClient does. */
export function askStatus(runDir: string, signal: AbortSignal, clock: Clock): Promise<DaemonStatus> {
  return new ApiClient(apiSocketPath(runDir), clock).get<DaemonStatus>('/podd/v1/status', signal)
}
