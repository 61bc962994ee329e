import { sameData } from '../../base/json.ts'
import type { Logger } from '../../base/logger.ts'
import type { PodHost } from '../actions/pod-host.ts'
import { podResolvConf } from '../../translate/network/dns.ts'
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

/** How soon another address is noticed, at the latest. */
const addressPeriodMs = 10_000

/**
 * Has what runs follow the host's addresses: pods on the host's network are shown, and probed, at the address it has now. A
 * new address wakes the job that follows the resolver, as a new lease brings a new resolver, mostly.
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

/** Has what runs follow the host's resolver. To be woken when its files change. */
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
