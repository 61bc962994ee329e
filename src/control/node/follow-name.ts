import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import type { NodeEventRecorder } from '../../pod/state/pod-event.ts'
import type { NodeJob } from '../jobs/node-jobs.ts'

export interface FollowNameOptions {
  /** The host's name now. */
  readonly readName: () => string
  /** The name that the node has, as the host had it when podd started. */
  readonly nodeName: string
  /** A restart now would break off what podd does about the host. */
  readonly isBusy: () => boolean
  /** Restarts podd; the pods keep running. */
  readonly restart: () => void
  readonly events: NodeEventRecorder
  readonly clock: Clock
  readonly logger: Logger
}

const periodMs = 10_000
/** A host that gets its name from the network may have several in a row. */
const settleMs = 15_000

/**
 * Has the node take the host's name where that was changed: podd restarts itself, and the pods keep running. What a container
 * was told of the old name (`spec.nodeName`) stays until the container is restarted.
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
