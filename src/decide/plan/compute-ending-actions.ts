import type { ObservedPod } from '../../pod/state/observed.ts'
import type { PodAction } from './pod-action.ts'

export interface EndingPlan {
  /** `stop`: something still runs or holds ports; `remove`: at most exited containers and stopped sandboxes are left. */
  readonly kind: 'stop' | 'remove'
  readonly actions: readonly PodAction[]
}

/**
 * The next actions of a terminating pod: everything is stopped, and then, if it is deleted, removed. Nothing is ever
 * started. A sandbox that died by itself holds its address and ports until it is stopped, so sandboxes are stopped once
 * in any case.
 */
export function computeEndingActions(
  observed: ObservedPod,
  { stoppedBefore }: { readonly stoppedBefore: boolean },
): EndingPlan {
  const alive = observed.containers.some(({ state }) => state === 'running' || state === 'unknown')
  const sandboxReady = observed.sandboxes.some((sandbox) => sandbox.ready)
  const unsure = observed.sandboxes.length > 0 && !stoppedBefore
  if (alive || sandboxReady || unsure)
    return { kind: 'stop', actions: [{ kind: 'stop-pod', reason: 'Killing' }] }
  const containers = observed.containers.map((container) => container.id)
  const sandboxes = observed.sandboxes.map((sandbox) => sandbox.id)
  return {
    kind: 'remove',
    actions: [
      ...(containers.length === 0 ? [] : [{ kind: 'remove-containers', ids: containers } as const]),
      ...(sandboxes.length === 0 ? [] : [{ kind: 'remove-sandboxes', ids: sandboxes } as const]),
    ],
  }
}
