import type { ContainerId } from '../../pod/values/ids.ts'
import type { ObservedContainer, ObservedPod } from '../../pod/state/observed.ts'
import type { PodRecord } from '../../pod/state/pod-record.ts'

/**
 * Containers whose start may have been called off because podd went away in the middle of it: the next one finds them
 * not started (containerd may be at it still), or failed to start, and no podd has taken that down, as one does that
 * gets the answer. That is no end of the container's. (Messages tell nothing for sure: "context canceled", or that the
 * shim was killed.)
 */
export function selectCalledOff(
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
 * Those that failed to start count as created: they start again whatever the restart policy says of ends. Where a process
 * of theirs may have run, the successor is a restart.
 */
export function withoutCalledOff(observed: ObservedPod, calledOff: ReadonlySet<ContainerId>): ObservedPod {
  const isCalledOff = (container: ObservedContainer): boolean =>
    calledOff.has(container.id) && hasFailedToStart(container)
  if (!observed.containers.some(isCalledOff)) return observed
  const containers = observed.containers.map((container) => {
    if (!isCalledOff(container)) return container
    const cancelled = hasNotRun(container) ? ('unrun' as const) : ('may-have-run' as const)
    return { ...container, state: 'created' as const, cancelled }
  })
  return { ...observed, containers }
}

function hasFailedToStart({ state, reason }: ObservedContainer): boolean {
  return state === 'exited' && reason === 'StartError'
}

/**
 * containerd makes a container's task, and then starts it: where the first step failed, nothing of the container ran
 * (`internal/cri/server/container_start.go`, containerd 2.1; 1.6 has the same words). No other field tells the steps
 * apart. Whatever else stands there counts as run.
 */
function hasNotRun({ message }: ObservedContainer): boolean {
  return message.startsWith('failed to create containerd task')
}
