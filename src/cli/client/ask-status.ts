import type { DaemonStatus } from '../../api/routes.ts'
import type { Clock } from '../../base/clock.ts'
import { ApiClient } from './client.ts'

/** The status of the daemon at a socket; throws as ApiClient does. */
export function askStatus(socketPath: string, signal: AbortSignal, clock: Clock): Promise<DaemonStatus> {
  return new ApiClient(socketPath, clock).get<DaemonStatus>('/podd/v1/status', signal)
}
