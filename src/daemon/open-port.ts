import { listenJobs } from '../api/routes.ts'
import { errorMessage } from '../base/errors.ts'
import { formatAddress } from '../config/api-options.ts'
import type { NodeJob } from '../control/node/node-jobs.ts'
import type { NodeEventRecorder } from '../pod/state/pod-event.ts'
import type { ServedPort } from '../server/listeners/port-opener.ts'

/** The time between two attempts. */
const periodMs = 10_000

const deadlineMs = 10_000

/**
 * Listens at a port at which podd could not when it started: another process had it, or its address was not assigned yet,
 * such as a VPN's. It does not run again once podd listens.
 */
export function openPortJob(port: ServedPort, events: NodeEventRecorder): NodeJob {
  const { option, address } = port
  /** Why it failed, as the last event says. */
  let told: string | undefined
  return {
    name: listenJobs[option],
    periodMs,
    deadlineMs,
    runsAtStart: true,
    async run() {
      try {
        await port.open()
      } catch (error) {
        const message = `${option}: ${errorMessage(error)}; podd keeps trying`
        if (message !== told) events.recordNode({ type: 'Warning', reason: 'ListenFailed', message })
        told = message
        throw error
      }
      if (told !== undefined) {
        const message = `${option}: podd listens at ${formatAddress(address)} now`
        events.recordNode({ type: 'Normal', reason: 'Listening', message })
      }
      return Infinity
    },
  }
}
