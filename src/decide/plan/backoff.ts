/*
 * When what ended or failed is tried again: by the restart policy; after a restart's backoff; after the backoff of a
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
export interface Backoff {
  readonly untilMs: number
  readonly waiting: Waiting
  /** The image that is unavailable, where that is why. */
  readonly image?: string
  /** The path of the host that is missing, where that is why: it is over when something is there. */
  readonly awaitedPath?: string
}

/**
 * What a backoff applies to. `next-image`: the image that a running container's manifest was changed to; `previous-image`:
 * the one that the container had before.
 */
export type BackoffKey =
  | { readonly kind: 'sandbox' | 'resize' }
  | { readonly kind: ContainerBackoffKind; readonly container: string }

type ContainerBackoffKind = 'container' | 'next-image' | 'previous-image'

/** All backoffs of one pod after failures; those of restarts are in its record. */
export interface Backoffs {
  readonly sandbox?: Backoff | undefined
  readonly resize?: Backoff | undefined
  /** By container name. */
  readonly containers: Readonly<
    Record<string, { readonly [Kind in ContainerBackoffKind]?: Backoff | undefined }>
  >
}

export const noBackoffs: Backoffs = { containers: {} }

export const sandboxBackoff: BackoffKey = { kind: 'sandbox' }
export const resizeBackoff: BackoffKey = { kind: 'resize' }

export function containerBackoff(container: string): BackoffKey {
  return { kind: 'container', container }
}

export function nextImageBackoff(container: string): BackoffKey {
  return { kind: 'next-image', container }
}

export function previousImageBackoff(container: string): BackoffKey {
  return { kind: 'previous-image', container }
}

/** The backoff under this key, which may have expired. */
export function backoffOf(backoffs: Backoffs, key: BackoffKey): Backoff | undefined {
  return 'container' in key ? backoffs.containers[key.container]?.[key.kind] : backoffs[key.kind]
}

/** `backoffs` with another one under this key, or none. */
export function withBackoff(backoffs: Backoffs, key: BackoffKey, backoff: Backoff | undefined): Backoffs {
  if (!('container' in key)) return { ...backoffs, [key.kind]: backoff }
  const { containers } = backoffs
  const changed = { ...containers[key.container], [key.kind]: backoff }
  return { ...backoffs, containers: { ...containers, [key.container]: changed } }
}

/** `backoffs` without those of the container and its images. */
export function withoutContainer({ containers, ...others }: Backoffs, container: string): Backoffs {
  const { [container]: _, ...left } = containers
  return { ...others, containers: left }
}

/**
 * The backoffs that a changed object does not end. It ends that of the sandbox, which waits for volumes, and those of
 * containers that could not be configured.
 */
export function withoutReferenceBackoffs(backoffs: Backoffs): Backoffs {
  return withoutReasons(
    { ...backoffs, sandbox: undefined },
    (reason) => reason === 'CreateContainerConfigError',
  )
}

/** `backoffs` without those of containers and their images whose waiting reason `isEnded`. */
export function withoutReasons(
  { containers, ...others }: Backoffs,
  isEnded: (reason: string) => boolean,
): Backoffs {
  const isKept = (backoff: Backoff | undefined): boolean =>
    backoff === undefined || !isEnded(backoff.waiting.reason)
  const left = Object.entries(containers).map(([name, backoffs]) => [
    name,
    Object.fromEntries(Object.entries(backoffs).filter(([, backoff]) => isKept(backoff))),
  ])
  return { ...others, containers: Object.fromEntries(left) }
}

/** The cap of the image backoff; a longer one dates from before the clock was set back. */
const maxBackoffMs = 300_000

/** The backoff under this key that has not expired. */
export function activeBackoff(
  { backoffs, nowMs }: { readonly backoffs: Backoffs; readonly nowMs: number },
  key: BackoffKey,
): Backoff | undefined {
  const backoff = backoffOf(backoffs, key)
  if (backoff === undefined || nowMs >= backoff.untilMs) return undefined
  return backoff.untilMs - nowMs > maxBackoffMs ? undefined : backoff
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
