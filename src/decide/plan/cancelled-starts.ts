import type { ContainerId } from '../../pod/values/ids.ts'
import type { ObservedContainer, ObservedPod } from '../../pod/state/observed.ts'
import type { PodRecord } from '../../pod/state/pod-record.ts'

/**
 * Selects the containers whose start may have been cancelled because podd ended during the call. The next podd finds
 * them created (containerd may still be starting them), or failed to start without a record of that failure, which a podd
 * that receives the answer writes. Such a failure is no exit of the container. (The error message does not prove a
 * cancellation: it is "context canceled", or that the shim was killed.)
 */
export function selectCancelledStarts(
  observed: ObservedPod,
  history: PodRecord['containers'],
): ReadonlySet<ContainerId> {
  const found = observed.containers.filter((container) => {
    if (container.state === 'created') return true
    const { ended, endedBefore } = history[container.name] ?? {}
    return (
      hasFailedToStart(container) && [ended, endedBefore].every((end) => end?.containerId !== container.id)
    )
  })
  return new Set(found.map(({ id }) => id))
}

/**
 * The pod with containers whose start was cancelled counted as created: they start again whatever the restart policy.
 * If a process of such a container may have run, its successor counts as a restart.
 */
export function withoutCancelledStarts(
  observed: ObservedPod,
  cancelledStarts: ReadonlySet<ContainerId>,
): ObservedPod {
  const isCancelled = (container: ObservedContainer): boolean =>
    cancelledStarts.has(container.id) && hasFailedToStart(container)
  if (!observed.containers.some(isCancelled)) return observed
  const containers = observed.containers.map((container) => {
    if (!isCancelled(container)) return container
    const cancelled = hasNotRun(container) ? ('unrun' as const) : ('may-have-run' as const)
    return { ...container, state: 'created' as const, cancelled }
  })
  return { ...observed, containers }
}

function hasFailedToStart({ state, reason }: ObservedContainer): boolean {
  return state === 'exited' && reason === 'StartError'
}

/**
 * containerd creates a container's task, and then starts it: if the first step failed, no process of the container ran
 * (`internal/cri/server/container_start.go`, containerd 2.1; 1.6 has the same message). No other field distinguishes the
 * steps. Any other message counts as run.
 */
function hasNotRun({ message }: ObservedContainer): boolean {
  return message.startsWith('failed to create containerd task')
}
