import type { Logger } from '../base/logger.ts'
import type { PodHost } from './pod-host.ts'
import { podResolvConf } from './pod-resolver.ts'
import type { PodWorkers } from './pod-workers.ts'

export interface ResolverFollowers {
  readonly host: PodHost
  readonly workers: PodWorkers
  readonly logger: Logger
}

/** Has what runs follow the host's resolver, until the signal is aborted. Never rejects. */
export async function followResolver(followers: ResolverFollowers, signal: AbortSignal): Promise<void> {
  await followers.host.followResolver?.(() => void refreshResolvers(followers), signal)
}

async function refreshResolvers({ host, workers, logger }: ResolverFollowers): Promise<void> {
  const conf = await host.readResolver().catch((error: unknown) => {
    logger.warn({ err: error }, "the host's resolver cannot be read")
  })
  if (conf === undefined) return
  for (const { ref, state } of workers.all()) {
    try {
      await host.volumes.refreshResolvConf(ref.uid, podResolvConf(state.classedPod, conf))
    } catch (error) {
      logger.warn({ pod: ref.name, uid: ref.uid, err: error }, "a pod cannot follow the host's resolver")
    }
  }
}
