import { sameData } from '../../base/json.ts'
import type { Logger } from '../../base/logger.ts'
import type { PodHost } from '../actions/pod-host.ts'
import { podResolvConf } from '../../translate/network/dns.ts'
import type { PodWorker } from '../worker/pod-worker.ts'
import type { NodeJob } from '../jobs/node-jobs.ts'

export interface FollowHostOptions {
  readonly host: Pick<PodHost, 'hostIps' | 'readResolver' | 'volumes'>
  readonly workers: () => Iterable<PodWorker>
  readonly periodMs: number
  readonly logger: Logger
}

const deadlineMs = 60_000

/**
 * Has what runs follow the host's resolver and addresses: pods on the host's network are shown, and probed, at the address
 * it has now. To be woken when the resolver's files change.
 */
export function followHostJob(options: FollowHostOptions): NodeJob {
  let addresses: readonly string[] | undefined
  return {
    name: 'follow-host',
    periodMs: options.periodMs,
    deadlineMs,
    runsAtStart: true,
    async run() {
      // A new lease brings a new resolver, mostly.
      const now = options.host.hostIps()
      if (addresses !== undefined && !sameData(now, addresses))
        for (const worker of options.workers()) worker.notice()
      addresses = now
      await refreshResolvers(options)
    },
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
