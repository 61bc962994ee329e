import type { PodEnding } from '../../pod/state/pod-record.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import { endingDeadlineMs } from './termination-order.ts'

/** A request to terminate a pod. */
export type EndRequest = Pick<PodEnding, 'cause' | 'reason' | 'message' | 'graceSeconds' | 'until'>

/** Whether nothing of the pod remains after this termination. */
export function goesAwayAfter(ending: Pick<PodEnding, 'cause'>): boolean {
  return ending.cause === 'removed' || ending.cause === 'replaced' || ending.cause === 'orphaned'
}

/**
 * Whether a successor may start once the containers have ended, without waiting for the teardown of their sandbox's
 * network: a sandbox by itself holds only host ports. What an orphan's sandbox holds is unknown.
 */
export function freesNameWithContainers(
  ending: Pick<PodEnding, 'cause'>,
  { spec }: Pick<Pod, 'spec'>,
): boolean {
  const hasHostPort = [...spec.initContainers, ...spec.containers].some(({ ports }) =>
    ports.some(({ hostPort }) => hostPort !== undefined && hostPort !== 0),
  )
  return goesAwayAfter(ending) && ending.cause !== 'orphaned' && !hasHostPort
}

/**
 * The termination of a pod after a request, maybe a repeated one: the grace period can only shrink, and a termination
 * is never undone (`pkg/kubelet/pod_workers.go` calculateEffectiveGracePeriod, Kubernetes 1.36). Returns `before`
 * itself if nothing changes.
 */
export function computeEnding(before: PodEnding | undefined, request: EndRequest, nowMs: number): PodEnding {
  if (before === undefined) return { ...request, requestedAtMs: nowMs }
  const deadlineMs = Math.min(endingDeadlineMs(before, nowMs), nowMs + request.graceSeconds * 1000)
  const shrinks = deadlineMs < endingDeadlineMs(before, nowMs)
  const { cause } = goesAwayAfter(before) ? before : request
  if (!shrinks && cause === before.cause) return before
  const graceSeconds = Math.max(0, (deadlineMs - Math.min(before.requestedAtMs, nowMs)) / 1000)
  return { ...before, cause, graceSeconds }
}
