import type { EventListObject, PodListObject } from '../../api/resource.ts'
import type { DaemonStatus } from '../../api/routes.ts'
import { errorCode, errorMessage } from '../../base/errors.ts'
import type { ApiClient } from '../client/client.ts'
import { summarizeHost } from './host-summary.ts'
import { mostErrors, readStateOnDisk } from './state-on-disk.ts'
import { countPods, lastErrors } from './status-report.ts'
import type { StatusReport } from './status-report.ts'

/** The errors that mean that the daemon is dead or doesn't answer. */
export const deadCodes: readonly string[] = ['DAEMON_NOT_RUNNING', 'DAEMON_SILENT', 'DAEMON_GONE']

/**
 * Asks the daemon, or reads its files where it doesn't answer. Throws what the client throws for another reason, and
 * where nothing says where its files are.
 * @param places those of the daemon; undefined where unknown
 */
export async function gatherStatus(
  client: ApiClient,
  places: { readonly rootDir: string; readonly runDir: string } | undefined,
  signal: AbortSignal,
): Promise<StatusReport> {
  try {
    const status = await client.get<DaemonStatus>('/podd/v1/status', signal)
    const pods = await client.getList<PodListObject>('/api/v1/pods', signal)
    const events = await client.get<EventListObject>('/api/v1/events', signal)
    return {
      ...status,
      running: true,
      host: summarizeHost(),
      pods: countPods(pods),
      lastErrors: lastErrors(events, mostErrors),
    }
  } catch (error) {
    if (signal.aborted || places === undefined || !deadCodes.includes(errorCode(error) ?? '')) throw error
    const message = errorMessage(error)
    return {
      ...readStateOnDisk(places.rootDir, places.runDir),
      running: false,
      message,
      host: summarizeHost(),
    }
  }
}
