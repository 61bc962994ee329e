import { sameData } from '../../base/json.ts'
import type { Logger } from '../../base/logger.ts'
import type { PodHost } from '../actions/pod-host.ts'
import { podResolvConf } from '../actions/pod-resolver.ts'
import type { PodWorkers } from '../desired/pod-workers.ts'

export interface HostFollowers {
  readonly host: PodHost
  readonly workers: PodWorkers
  readonly logger: Logger
}

/**
 * Has what runs follow the host's resolver and addresses, until the signal is aborted: pods on the host's network are
 * shown, and probed, at the address it has now. Never rejects.
 */
export async function followHost(followers: HostFollowers, signal: AbortSignal): Promise<void> {
  const { host, workers } = followers
  let addresses = readAddresses(followers)
  await host.followResolver?.(() => {
    void refreshResolvers(followers)
    // A new lease brings a new resolver, mostly; and this is asked every minute.
    const now = readAddresses(followers)
    if (now === undefined || sameData(now, addresses)) return
    addresses = now
    for (const worker of workers.all()) worker.notice()
  }, signal)
}

/** Undefined where they can't be read: for want of files, say. */
function readAddresses({ host, logger }: HostFollowers): readonly string[] | undefined {
  try {
    return host.hostIps()
  } catch (error) {
    logger.warn({ err: error }, "cannot read the host's addresses")
    return undefined
  }
}

async function refreshResolvers({ host, workers, logger }: HostFollowers): Promise<void> {
  const conf = await host.readResolver().catch((error: unknown) => {
    logger.warn({ err: error }, "cannot read the host's resolver configuration")
  })
  if (conf === undefined) return
  for (const { ref, state } of workers.all()) {
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
