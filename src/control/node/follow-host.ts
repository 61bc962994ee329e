import { sameData } from '../../base/json.ts'
import type { Logger } from '../../base/logger.ts'
import type { PodHost } from '../actions/pod-host.ts'
import { podResolvConf } from '../../translate/network.ts'
import type { NodeEventRecorder } from '../../pod/state/pod-event.ts'
import type { PodWorker } from '../worker/pod-worker.ts'
import type { NodeJob } from '../jobs/node-jobs.ts'

export interface FollowHostOptions {
  readonly host: Pick<PodHost, 'readResolver' | 'volumes'>
  readonly workers: () => Iterable<PodWorker>
  readonly periodMs: number
  readonly logger: Logger
}

const deadlineMs = 60_000

/** The longest delay before a new address is noticed. */
const addressPeriodMs = 10_000

/**
 * Updates running pods after changes of the host's addresses: pods on the host's network are shown and probed at its
 * current address. A new address wakes the job that follows the resolver, as a new DHCP lease usually brings a new
 * resolver.
 */
export function followAddressJob(options: {
  readonly hostIps: () => readonly string[]
  readonly workers: () => Iterable<PodWorker>
  readonly onChange: () => void
  readonly periodMs: number
  readonly events: NodeEventRecorder
}): NodeJob {
  const { hostIps, workers, onChange, periodMs, events } = options
  let addresses: readonly string[] | undefined
  return {
    name: 'follow-address',
    periodMs: Math.min(periodMs, addressPeriodMs),
    deadlineMs,
    runsAtStart: true,
    async run() {
      const before = addresses
      addresses = hostIps()
      if (before === undefined || sameData(addresses, before)) return
      const message = `The host's address is ${addresses.join(', ')} now; it was ${before.join(', ')}`
      events.recordNode({ type: 'Normal', reason: 'NodeAddressChanged', message })
      for (const worker of workers()) worker.notice()
      onChange()
    },
  }
}

/** Updates running pods after changes of the host's resolver. Wake it when the resolver's files change. */
export function followHostJob(options: FollowHostOptions): NodeJob {
  return {
    name: 'follow-host',
    periodMs: options.periodMs,
    deadlineMs,
    runsAtStart: true,
    run: () => refreshResolvers(options),
  }
}

async function refreshResolvers({ host, workers, logger }: FollowHostOptions): Promise<void> {
  const conf = await host.readResolver()
  for (const { ref, state } of workers()) {
    try {
      await host.volumes.refreshResolvConf(ref.uid, podResolvConf(state.classedPod, conf))
    } catch (error) {
      logger.warn(
        { pod: ref.name, uid: ref.uid, err: error },
        'cannot update the resolver configuration of a pod',
      )
    }
  }
}
