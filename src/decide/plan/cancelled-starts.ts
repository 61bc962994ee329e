import type { ContainerId } from '../../pod/values/ids.ts'
import type { ObservedContainer, ObservedPod } from '../../pod/state/observed.ts'
import type { PodRecord } from '../../pod/state/pod-record.ts'

/**
 * Selects the containers whose start may have been cancelled because podd ended during the call, and what keeps the call
 * (`host/keep-connection.ts`) with it. The next podd finds
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
 * What containerd does of a start before it starts the container's task, in the order in which that fails: no process of
 * the container has run then (`internal/cri/server/container_start.go`, containerd 2.1; `pkg/cri/server`, 1.6; each of
 * these can be cancelled). No other field distinguishes the steps. Any other message counts as run.
 */
const stepsBeforeRun = [
  'failed to get container info',
  'failed to update container IO owner',
  'failed to create containerd task',
  'nri invoke',
  'NRI container start failed',
] as const

function hasNotRun({ message }: ObservedContainer): boolean {
  return stepsBeforeRun.some((step) => message.startsWith(`${step}: `))
}
