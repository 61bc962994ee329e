/*
 * When what ended or failed is tried again: by the restart policy; after a restart's backoff; some time after a
 * failed start, pull or resize; and at once where a start was cut off by podd's own end.
 */
import { canonicalJson } from '../../base/json.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import type { PodSpec } from '../../pod/schema/pod-schema.ts'
import type { ObservedContainer, ObservedPod } from '../../pod/state/observed.ts'
import type { BackoffEntry, PodRecord } from '../../pod/state/pod-record.ts'
import type { ContainerId } from '../../pod/values/ids.ts'
import type { Waiting } from './pod-action.ts'

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

/** Tells restarts of one kind from others: with another image or other resources their backoff starts over. */
export function restartKey(container: Pick<ContainerSpec, 'image' | 'resources'>): string {
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

/** Of a start, pull or resize that failed: it is not retried before `untilMs`, and `waiting` is shown until then. */
export interface Retry {
  readonly untilMs: number
  readonly waiting: Waiting
  /** The image that is unavailable, where that is why. */
  readonly image?: string
  /** The path of the host that is missing, where that is why: it is over when something is there. */
  readonly awaitedPath?: string
}

/**
 * What is tried again. `next-image`: the image that a running container's manifest was changed to; `previous-image`:
 * the one that the container had before.
 */
export type RetryKey =
  | { readonly kind: 'sandbox' | 'resize' }
  | { readonly kind: ContainerRetryKind; readonly container: string }

type ContainerRetryKind = 'container' | 'next-image' | 'previous-image'

/** When what failed of a pod is tried again; the backoff of restarts is in its record. */
export interface Retries {
  readonly sandbox?: Retry | undefined
  readonly resize?: Retry | undefined
  /** By container name. */
  readonly containers: Readonly<Record<string, { readonly [Kind in ContainerRetryKind]?: Retry | undefined }>>
}

export const noRetries: Retries = { containers: {} }

export const sandboxRetry: RetryKey = { kind: 'sandbox' }
export const resizeRetry: RetryKey = { kind: 'resize' }

export function containerRetry(container: string): RetryKey {
  return { kind: 'container', container }
}

export function nextImageRetry(container: string): RetryKey {
  return { kind: 'next-image', container }
}

export function previousImageRetry(container: string): RetryKey {
  return { kind: 'previous-image', container }
}

/** The wait under this key, which may be over. */
export function retryOf(retries: Retries, key: RetryKey): Retry | undefined {
  return 'container' in key ? retries.containers[key.container]?.[key.kind] : retries[key.kind]
}

/** `retries` with another one under this key, or none. */
export function withRetry(retries: Retries, key: RetryKey, retry: Retry | undefined): Retries {
  if (!('container' in key)) return { ...retries, [key.kind]: retry }
  const { containers } = retries
  const changed = { ...containers[key.container], [key.kind]: retry }
  return { ...retries, containers: { ...containers, [key.container]: changed } }
}

/** `retries` without those of the container and its images. */
export function withoutContainer({ containers, ...others }: Retries, container: string): Retries {
  const { [container]: _, ...left } = containers
  return { ...others, containers: left }
}

/**
 * The waits that a changed object does not end. It ends that of the sandbox, which waits for volumes, and those of
 * containers that could not be configured.
 */
export function withoutReferenceRetries(retries: Retries): Retries {
  return withoutReasons(
    { ...retries, sandbox: undefined },
    (reason) => reason === 'CreateContainerConfigError',
  )
}

/** `retries` without those of containers and their images whose waiting reason `isEnded`. */
export function withoutReasons(
  { containers, ...others }: Retries,
  isEnded: (reason: string) => boolean,
): Retries {
  const isKept = (retry: Retry | undefined): boolean => retry === undefined || !isEnded(retry.waiting.reason)
  const left = Object.entries(containers).map(([name, retries]) => [
    name,
    Object.fromEntries(Object.entries(retries).filter(([, retry]) => isKept(retry))),
  ])
  return { ...others, containers: Object.fromEntries(left) }
}

/** The longest wait for an image; a longer one dates from before the clock was set back. */
const maxRetryMs = 300_000

/** The wait under this key that is not over. */
export function activeRetry(
  { retries, nowMs }: { readonly retries: Retries; readonly nowMs: number },
  key: RetryKey,
): Retry | undefined {
  const retry = retryOf(retries, key)
  if (retry === undefined || nowMs >= retry.untilMs) return undefined
  return retry.untilMs - nowMs > maxRetryMs ? undefined : retry
}

/**
 * Selects the containers whose start may have been cancelled because podd ended during the call, and with it what keeps
 * the connection of the call (`host/keep-connection.ts`). The next podd finds them created (containerd may still be
 * starting them), or failed to start without a record of that failure, which a podd that receives the answer writes.
 * Such a failure is no exit of the container. (The error message does not prove a cancellation: it is "context
 * canceled", or that the shim was killed.)
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
