import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import type { NodeEventRecorder } from '../../pod/state/pod-event.ts'
import type { NodeJob } from '../jobs/node-jobs.ts'

export interface FollowNameOptions {
  /** The current name of the host. */
  readonly readName: () => string
  /** The node's name: the host's name when podd started. */
  readonly nodeName: string
  /** A restart now would interrupt podd's work, such as a drain. */
  readonly isBusy: () => boolean
  /** Restarts podd; the pods keep running. */
  readonly restart: () => void
  readonly events: NodeEventRecorder
  readonly clock: Clock
  readonly logger: Logger
}

const periodMs = 10_000
/** How long a name must be stable: a host that gets its name from the network may have several in a row. */
const settleMs = 15_000

/**
 * Restarts podd after a change of the host's name, so that the node gets the new one; the pods keep running. Variables
 * with `spec.nodeName` keep the old name until their container is restarted.
 */
export function followNameJob(options: FollowNameOptions): NodeJob {
  const { readName, nodeName, isBusy, restart, events, clock, logger } = options
  let seen = nodeName
  let sinceMs = 0
  return {
    name: 'follow-name',
    periodMs,
    deadlineMs: periodMs,
    async run() {
      const name = readName()
      if (name !== seen) {
        seen = name
        sinceMs = clock.monotonicMs()
        if (name === nodeName) return
        const message = `The host was renamed from ${nodeName} to ${name}: podd restarts itself to take the name, and the pods keep running`
        events.recordNode({ type: 'Warning', reason: 'NodeRenamed', message })
        logger.warn({ reason: message }, 'the host was renamed')
      }
      if (name === nodeName || isBusy() || clock.monotonicMs() - sinceMs < settleMs) return
      restart()
    },
  }
}
