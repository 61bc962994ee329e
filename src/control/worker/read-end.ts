import type { Logger } from '../../base/logger.ts'
import type { ObservedContainer, ObservedPod } from '../../pod/state/observed.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { PodRef } from '../../pod/values/ids.ts'

import { readContainerFacts } from '../../translate/identity.ts'
import type { PodHost } from '../actions/pod-host.ts'

/**
 * The termination message of a container: its termination message file, or, with FallbackToLogsOnError and a failure,
 * the end of its log; else the runtime's message (`pkg/kubelet/kuberuntime/kuberuntime_container.go`
 * getTerminationMessage, Kubernetes 1.36).
 */
async function readTerminationMessage(
  host: Pick<PodHost, 'volumes' | 'logs'>,
  ref: PodRef,
  container: ObservedContainer,
): Promise<string> {
  const facts = readContainerFacts(container.annotations)
  const written =
    facts.terminationMessagePath === ''
      ? ''
      : await host.volumes.readTerminationLog(ref.uid, container.name, container.restartCount)
  if (written !== '') return container.message === '' ? written : `${container.message}: ${written}`
  const failed = container.exitCode !== undefined && container.exitCode !== 0
  if (facts.terminationMessagePolicy !== 'FallbackToLogsOnError' || !failed) return container.message
  const tail = await host.logs.tail(ref, container.name, container.restartCount)
  return container.message === '' ? tail : `${container.message}: ${tail}`
}

/** As above, but falls back to the runtime's message where the host's files can't be read; never rejects. */
export async function readEndMessage(
  { host, logger }: { readonly host: Pick<PodHost, 'volumes' | 'logs'>; readonly logger: Logger },
  ref: PodRef,
  container: ObservedContainer,
): Promise<string> {
  try {
    return await readTerminationMessage(host, ref, container)
  } catch (error) {
    const { name: pod, uid } = ref
    logger.warn({ pod, uid, container: container.name, err: error }, 'cannot read the termination message')
    return container.message
  }
}

/**
 * How many OOM kills the pod's cgroup has counted, without those of live containers; undefined where that is unknown.
 */
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
