import type { ObservedContainer, ObservedPod } from '../../pod/state/observed.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import { isRestartableInit } from './restart-policy.ts'

/** StopContainer gets at least this, whatever preStop has used up (`minimumGracePeriodInSeconds`). */
const minimumStopSeconds = 2

/** The upper limit: the runtime counts nanoseconds in 63 bits, which overflow beyond it. */
const longestStopSeconds = 2 ** 32

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
  const alive = observed.containers.filter((c) => c.state === 'running' || c.state === 'unknown')
  const sidecars = (pod?.spec.initContainers ?? [])
    .filter((spec) => isRestartableInit(spec))
    .map((spec) => spec.name)
  const first = alive.filter((container) => !sidecars.includes(container.name))
  const last = sidecars.toReversed().map((name) => alive.filter((container) => container.name === name))
  return [first, ...last].filter((wave) => wave.length > 0)
}

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

/** The deadline of a termination: a clock that jumped back doesn't extend it beyond the grace period from now. */
export function endingDeadlineMs(
  ending: { readonly requestedAtMs: number; readonly graceSeconds: number },
  nowMs: number,
): number {
  return Math.min(ending.requestedAtMs, nowMs) + ending.graceSeconds * 1000
}
