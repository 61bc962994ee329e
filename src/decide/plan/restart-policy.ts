import type { BackoffEntry } from '../../pod/state/pod-record.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import type { PodSpec } from '../../pod/schema/pod-schema.ts'
import { canonicalJson } from '../../base/json.ts'

type RestartSpec = Pick<ContainerSpec, 'restartPolicy' | 'restartPolicyRules'>

/** A sidecar: an init container that keeps running beside the main ones. */
export function isRestartableInit(container: RestartSpec): boolean {
  return container.restartPolicy === 'Always'
}

/** The container's own rule that matches an exit code, if there is one. */
export function matchRestartRule(
  container: RestartSpec,
  exitCode: number,
): 'Restart' | 'RestartAllContainers' | undefined {
  const rule = container.restartPolicyRules.find((candidate) => {
    if (candidate.exitCodes === undefined) return false
    const listed = candidate.exitCodes.values.includes(exitCode)
    return candidate.exitCodes.operator === 'In' ? listed : !listed
  })
  return rule?.action
}

/**
 * Whether a container that ended with `exitCode` shall run again: its own rules first, then its own
 * policy, then the pod's (`pkg/api/v1/pod/util.go` ContainerShouldRestart, Kubernetes 1.36).
 */
export function shouldRestart(
  spec: Pick<PodSpec, 'restartPolicy'>,
  container: RestartSpec,
  exitCode: number,
): boolean {
  if (container.restartPolicy !== undefined && matchRestartRule(container, exitCode) !== undefined)
    return true
  const policy = container.restartPolicy ?? spec.restartPolicy
  return policy === 'Always' || (policy === 'OnFailure' && exitCode !== 0)
}

/**
 * Whether a container that is stopped while it runs (a failed probe, an unknown state) is to run again: there is no
 * exit code yet for its rules.
 */
export function restartsAfterStop(
  spec: Pick<PodSpec, 'restartPolicy'>,
  container: Pick<RestartSpec, 'restartPolicy'>,
): boolean {
  return (container.restartPolicy ?? spec.restartPolicy) !== 'Never'
}

export interface BackoffLimits {
  /** The first delay; the free restart before it is not counted. */
  readonly initialMs: number
  readonly maxMs: number
}

/** The kubelet's: 10 s doubling to 300 s, or to `crashLoopBackOff.maxContainerRestartPeriod`. */
export function backoffLimits(maxRestartPeriodMs = 300_000): BackoffLimits {
  return { initialMs: Math.min(10_000, maxRestartPeriodMs), maxMs: maxRestartPeriodMs }
}

/** The key of a backoff: with another image or other resources it starts over. */
export function backoffKey(container: Pick<ContainerSpec, 'image' | 'resources'>): string {
  return `${container.image} ${canonicalJson(container.resources)}`
}

export type RestartTiming =
  /** Run it now and record `entry` before doing so. */
  | { readonly kind: 'now'; readonly entry: BackoffEntry }
  /** Not before `untilMs`; `delayMs` is what the message names. */
  | { readonly kind: 'wait'; readonly untilMs: number; readonly delayMs: number }

/**
 * A container that ran this long starts without backoff, whatever the cap (`pkg/kubelet/kubelet.go`, HasExpiredFunc).
 */
export const backoffResetMs = 600_000

/**
 * When a container that ended at `finishedAtMs` may run again: at once the first time, then after 10 s doubling to the
 * cap, counted from its end (or from `countedFromMs`); the backoff is reset when it ran for ten minutes
 * (`client-go/util/flowcontrol/backoff.go` and kuberuntime's doBackOff, Kubernetes 1.36). An exit in the future was
 * recorded before the clock was set back: how long ago it was is unknown, so the container does not wait. Nor does it
 * wait for an exit before the host was booted: the boot ended the container, and a kubelet loses its backoff then too.
 */
export function computeRestartTiming(facts: {
  readonly key: string
  readonly previous: BackoffEntry | undefined
  readonly finishedAtMs: number
  readonly countedFromMs?: number
  readonly nowMs: number
  readonly bootId: string
  readonly limits: BackoffLimits
}): RestartTiming {
  const { key, previous, finishedAtMs, nowMs, bootId, limits } = facts
  const fresh =
    previous === undefined ||
    previous.key !== key ||
    (previous.bootId ?? bootId) !== bootId ||
    finishedAtMs - previous.updatedAtMs > backoffResetMs
  const earn = (delayMs: number): RestartTiming => ({
    kind: 'now',
    entry: { key, delayMs, updatedAtMs: nowMs, bootId },
  })
  if (fresh) return earn(limits.initialMs)
  const delayMs = Math.min(previous.delayMs, limits.maxMs)
  const fromMs = facts.countedFromMs ?? finishedAtMs
  if (fromMs <= nowMs && nowMs < fromMs + delayMs) return { kind: 'wait', untilMs: fromMs + delayMs, delayMs }
  return earn(Math.min(delayMs * 2, limits.maxMs))
}
