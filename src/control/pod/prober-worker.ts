import { TokenBucket } from '../../base/waits.ts'
import type { ProbeKind, ProbeVerdict } from '../../decide/plan/pod-facts.ts'
import { startProbeState } from '../../decide/plan/probe-reducer.ts'
import type { ProbeState } from '../../decide/plan/probe-reducer.ts'
import type { ContainerPort, Probe } from '../../pod/schema/container-schema.ts'
import type { ContainerId, PodRef } from '../../pod/values/ids.ts'
import type { ProbeOutcome, ProbeTarget } from '../../probes/probe-outcome.ts'

/** The fields of a container's spec that concern its probes. */
export interface ProbedSpec {
  readonly livenessProbe?: Probe | undefined
  readonly readinessProbe?: Probe | undefined
  readonly startupProbe?: Probe | undefined
  readonly ports: readonly ContainerPort[]
  readonly env?: readonly { readonly name: string; readonly value: string }[]
}

export interface ProbedContainer {
  readonly name: string
  readonly containerId: ContainerId
  /** Wall milliseconds. */
  readonly startedAtMs: number
  readonly spec: ProbedSpec
  /** What an earlier podd published of this container; read when the prober first sees it. */
  readonly adopted?: { readonly started: boolean; readonly ready: boolean } | undefined
}

export interface ProbedPod {
  readonly pod: PodRef
  /** The primary one first; for a pod on the host's network, the host's. */
  readonly podIps: readonly string[]
  /** The pod is terminating: liveness and startup probes stop, readiness probes go on. */
  readonly ending: boolean
  readonly containers: readonly ProbedContainer[]
}

/**
 * How often each result occurred. `repeated`: the probe was sent again because podd itself was too busy or the runtime
 * silent.
 */
export interface ProbeCounts {
  readonly success: number
  readonly failure: number
  readonly unknown: number
  readonly repeated: number
}

export interface ProbeFailure {
  readonly containerId: ContainerId
  /** Wall milliseconds. */
  readonly atMs: number
  readonly message: string
}

/** One probe as `describe` and metrics show it. */
export interface ProbeReport {
  readonly container: string
  readonly containerId: ContainerId
  readonly probe: ProbeKind
  readonly result: ProbeVerdict
  readonly lastFailure: ProbeFailure | undefined
  readonly counts: ProbeCounts
}

/** One probe of one container over all the container's restarts. The prober alone writes to it. */
export interface ProbeWorker {
  readonly pod: PodRef
  readonly container: string
  readonly kind: ProbeKind
  probe: Probe
  /** Undefined while the container doesn't run. */
  target: ProbeTarget | undefined
  state: ProbeState
  ending: boolean
  /** Monotonic milliseconds; see ProbeFacts. */
  notBeforeMs: number
  tickMs: number
  inFlight: boolean
  /** Cancels the probe in flight; replaced after each use. */
  controller: AbortController
  /** How many more events it may give rise to. */
  readonly events: TokenBucket
  counts: ProbeCounts
  lastFailure: ProbeFailure | undefined
}

export const probeKinds: readonly ProbeKind[] = ['startup', 'readiness', 'liveness']

export interface Moment {
  readonly wallMs: number
  readonly monotonicMs: number
}

/** @param jitterMs how long to wait before the first probe, beside the initial delay */
export function createWorker(
  pod: PodRef,
  container: ProbedContainer,
  kind: ProbeKind,
  probe: Probe,
  jitterMs: number,
  now: Moment,
): ProbeWorker {
  return {
    pod,
    container: container.name,
    kind,
    probe,
    target: undefined,
    state: startProbeState(kind, container.containerId, adoptedVerdict(kind, container)),
    ending: false,
    notBeforeMs: notBefore(probe, container, now),
    tickMs: now.monotonicMs + jitterMs,
    inFlight: false,
    controller: new AbortController(),
    events: eventAllowance(now.monotonicMs),
    counts: { success: 0, failure: 0, unknown: 0, repeated: 0 },
    lastFailure: undefined,
  }
}

function adoptedVerdict(kind: ProbeKind, { adopted }: ProbedContainer): 'success' | undefined {
  const stood = kind === 'startup' ? adopted?.started : kind === 'readiness' && adopted?.ready
  return stood === true ? 'success' : undefined
}

/** Resets the worker for a restarted container, except its counts and its last failure. */
export function restartWorker(worker: ProbeWorker, container: ProbedContainer, now: Moment): void {
  worker.state = startProbeState(worker.kind, container.containerId)
  worker.notBeforeMs = notBefore(worker.probe, container, now)
  worker.tickMs = now.monotonicMs
}

/** Cancels the probe in flight, at once. */
export function abortWorker(worker: ProbeWorker): void {
  if (!worker.inFlight) return
  worker.inFlight = false
  worker.controller.abort()
  worker.controller = new AbortController()
}

/**
 * How long the container has run follows from the wall clock, which may be wrong: the initial delay bounds the result.
 */
function notBefore(probe: Probe, container: ProbedContainer, now: Moment): number {
  const delayMs = probe.initialDelaySeconds * 1000
  const leftMs = delayMs - (now.wallMs - container.startedAtMs)
  return now.monotonicMs + Math.min(Math.max(leftMs, 0), delayMs)
}

/**
 * 25 events at once, and then one in five minutes: what Kubernetes' event clients let an object have (client-go
 * tools/record, EventSourceObjectSpamFilter).
 */
export function eventAllowance(nowMs: number): TokenBucket {
  return new TokenBucket(1 / 300, 25, nowMs)
}

/** The longest message a Kubernetes event holds. */
const maxMessageChars = 1024

const titles: Readonly<Record<ProbeKind, string>> = {
  liveness: 'Liveness',
  readiness: 'Readiness',
  startup: 'Startup',
}

/**
 * The word for a probe's outcome in events and in `describe`; undefined for a plain success.
 * (pkg/kubelet/prober/prober.go, 1.36)
 */
export function describeOutcome(kind: ProbeKind, outcome: ProbeOutcome): string | undefined {
  const said = messageOf(kind, outcome)
  if (said === undefined || said.length <= maxMessageChars) return said
  return `${said.slice(0, maxMessageChars - 3).toWellFormed()}...`
}

function messageOf(kind: ProbeKind, { result, output }: ProbeOutcome): string | undefined {
  switch (result) {
    case 'success':
      return undefined
    case 'warning':
      return `${titles[kind]} probe warning: ${output}`
    case 'failure':
      return `${titles[kind]} probe failed: ${output}`
    case 'unknown':
      return `${titles[kind]} probe errored and resulted in unknown state: ${output}`
  }
}
