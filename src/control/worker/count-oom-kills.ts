import type { Logger } from '../../base/logger.ts'
import type { ObservedPod } from '../../pod/state/observed.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { PodHost } from '../actions/pod-host.ts'

/** How often the kernel has killed in the pod's cgroup for memory, but for what lives; undefined where that can't be known. */
export async function countOomKills(
  { host, logger }: { readonly host: Pick<PodHost, 'cgroups'>; readonly logger: Logger },
  pod: Pod,
  { uid, sandboxes, containers }: ObservedPod,
): Promise<number | undefined> {
  const live = [
    ...sandboxes.filter(({ ready }) => ready),
    ...containers.filter(({ state }) => state !== 'exited'),
  ].map(({ id }) => id)
  try {
    return await host.cgroups.countOomKills(uid, pod, live)
  } catch (error) {
    logger.debug({ uid, err: error }, 'cannot count OOM kills')
    return undefined
  }
}
