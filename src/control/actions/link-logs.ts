import type { Logger } from '../../base/logger.ts'
import type { ContainerId, PodRef } from '../../pod/values/ids.ts'
import type { ObservedPod } from '../../pod/state/observed.ts'
import type { LoggedContainer, PodHost } from './pod-host.ts'

export interface LinkLogsDeps {
  readonly host: { readonly logs: Pick<PodHost['logs'], 'link' | 'retainLinks'> }
  readonly logger: Logger
}

type Linked = Map<ContainerId, 'linked' | 'failed'>

/**
 * Links the logs of all containers that have been started: a podd that was killed may not have come to it. One that
 * fails is tried again with the next call.
 */
export async function linkLogs(deps: LinkLogsDeps, pod: ObservedPod, linked: Linked): Promise<void> {
  const { namespace, name, uid, containers } = pod
  for (const container of containers)
    if (container.state !== 'created') await linkLog(deps, { namespace, name, uid }, container, linked)
  for (const id of linked.keys()) if (!containers.some((container) => container.id === id)) linked.delete(id)
}

/** Removes links to logs of containers that are gone: a podd that was killed may have removed the container alone. */
export async function unlinkGone({ host, logger }: LinkLogsDeps, pod: ObservedPod): Promise<void> {
  const { namespace, name, uid, containers } = pod
  try {
    await host.logs.retainLinks({ namespace, name, uid }, containers)
  } catch (error) {
    logger.warn({ pod: name, uid, err: error }, 'cannot remove the log links of removed containers')
  }
}

/** A missing link costs a log shipper its file, never the pod its container: a failure is only logged, once. */
export async function linkLog(
  { host, logger }: LinkLogsDeps,
  ref: PodRef,
  { id, name, restartCount }: LoggedContainer,
  linked: Linked,
): Promise<void> {
  if (linked.get(id) === 'linked') return
  try {
    // One that isn't there yet is looked for again.
    if (await host.logs.link(ref, { id, name, restartCount })) linked.set(id, 'linked')
  } catch (error) {
    if (!linked.has(id))
      logger.warn({ pod: ref.name, uid: ref.uid, container: name, err: error }, 'cannot link a log')
    linked.set(id, 'failed')
  }
}
