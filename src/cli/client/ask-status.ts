import type { DaemonStatus } from '../../api/routes.ts'
import type { Clock } from '../../base/clock.ts'
import { ApiClient } from './client.ts'

/** What the daemon at a socket says of itself; throws as ApiClient does. */
export function askStatus(socketPath: string, signal: AbortSignal, clock: Clock): Promise<DaemonStatus> {
  return new ApiClient(socketPath, clock).get<DaemonStatus>('/podd/v1/status', signal)
}
