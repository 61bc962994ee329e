/* The end of a pod: what a request makes of an earlier one, what is stopped in which order, and how long each may take. */
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { ObservedContainer, ObservedPod } from '../../pod/state/observed.ts'
import type { PodEnding } from '../../pod/state/pod-record.ts'
import { isRestartableInit } from './backoff.ts'
import { isAlive } from './container-view.ts'
import type { PodAction } from './pod-action.ts'

/** A request to terminate a pod. */
export type EndRequest = Pick<PodEnding, 'cause' | 'reason' | 'message' | 'graceSeconds' | 'until' | 'asked'>

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
  const asked = before.asked ?? request.asked
  if (!shrinks && cause === before.cause && asked === before.asked) return before
  const graceSeconds = Math.max(0, (deadlineMs - Math.min(before.requestedAtMs, nowMs)) / 1000)
  return { ...before, cause, graceSeconds, ...(asked !== undefined && { asked }) }
}

/** Whether nothing of the pod remains after this termination. */
export function goesAwayAfter(ending: Pick<PodEnding, 'cause'>): boolean {
  return ending.cause === 'removed' || ending.cause === 'replaced' || ending.cause === 'orphaned'
}

/**
 * Whether a successor may start once the containers have ended, without waiting for the teardown of their sandbox's
 * network: a sandbox by itself has only host ports. What an orphan's sandbox has is unknown.
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

/** The deadline of a termination: a clock that jumped back doesn't extend it beyond the grace period from now. */
export function endingDeadlineMs(
  ending: { readonly requestedAtMs: number; readonly graceSeconds: number },
  nowMs: number,
): number {
  return Math.min(ending.requestedAtMs, nowMs) + ending.graceSeconds * 1000
}

export interface EndingPlan {
  /** `stop`: something still runs or has ports; `remove`: at most exited containers and stopped sandboxes are left. */
  readonly kind: 'stop' | 'remove'
  readonly actions: readonly PodAction[]
}

/**
 * The next actions of a terminating pod: everything is stopped, and then, if it is deleted, removed. Nothing is ever
 * started. A sandbox that died by itself keeps its address and ports until it is stopped, so sandboxes are stopped once
 * in any case.
 */
export function computeEndingActions(
  observed: ObservedPod,
  { stoppedBefore }: { readonly stoppedBefore: boolean },
): EndingPlan {
  const alive = observed.containers.some((container) => isAlive(container))
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

/**
 * The containers to stop, in waves: each wave is stopped at once, the next begins when the one before has ended.
 * Sidecars go last, one by one, in reverse order, so that they outlive the main containers
 * (`pkg/kubelet/kuberuntime/kuberuntime_termination_order.go`, Kubernetes 1.36). Without a pod (an orphan) there is one
 * wave.
 */
export function computeTerminationWaves(
  observed: ObservedPod,
  pod: Pod | undefined,
): readonly (readonly ObservedContainer[])[] {
  const alive = observed.containers.filter((container) => isAlive(container))
  const sidecars = (pod?.spec.initContainers ?? [])
    .filter((spec) => isRestartableInit(spec))
    .map((spec) => spec.name)
  const first = alive.filter((container) => !sidecars.includes(container.name))
  const last = sidecars.toReversed().map((name) => alive.filter((container) => container.name === name))
  return [first, ...last].filter((wave) => wave.length > 0)
}

/** StopContainer gets at least this, whatever preStop has used up (`minimumGracePeriodInSeconds`). */
const minimumStopSeconds = 2

/** The upper limit: the runtime counts nanoseconds in 63 bits, which overflow beyond it. */
const longestStopSeconds = 2 ** 32

/**
 * The timeout of StopContainer in whole seconds, for the remaining grace period.
 * @param overrideSeconds a grace period that was asked for in place of the pod's own; it may be shorter than the minimum
 * (`pkg/kubelet/kuberuntime/kuberuntime_container.go` killContainer, Kubernetes 1.36)
 */
export function stopTimeout(leftMs: number, overrideSeconds = Infinity): number {
  const leastSeconds = Math.min(minimumStopSeconds, Math.ceil(overrideSeconds))
  return Math.min(longestStopSeconds, Math.max(leastSeconds, Math.ceil(leftMs / 1000)))
}

/** The override that the termination of a pod is, which the kubelet never makes zero (calculateEffectiveGracePeriod). */
export function endingOverrideSeconds(ending: { readonly graceSeconds: number }): number {
  return Math.max(1, ending.graceSeconds)
}
