/*
 * Evaluates probes: the verdict on a container, and when it is next probed. Follows the kubelet's prober
 * (pkg/kubelet/prober/worker.go, Kubernetes 1.36) with two differences in the container's favour: a new container
 * starts with a clean count of runs, and the next probe is due at a computed moment (start + initial delay) instead of
 * at the next tick.
 */
import type { ContainerId } from '../../pod/values/ids.ts'
import type { Probe } from '../../pod/schema/container-schema.ts'
import type { ProbeKind, ProbeVerdict } from './pod-facts.ts'

/**
 * The result of one probe; `errored` where the probe itself could not be carried out, which proves nothing about the
 * container.
 */
export type ProbeFinding = 'success' | 'failure' | 'errored'

export interface ProbeState {
  /** The container that `verdict` is about. */
  readonly containerId: ContainerId
  /** What is published. */
  readonly verdict: ProbeVerdict
  /** The last result, and how many times in a row it occurred. */
  readonly last: 'success' | 'failure' | undefined
  readonly run: number
  /** Set by a liveness or startup failure: no further probes until there is a new container. */
  readonly onHold: boolean
}

type Thresholds = Pick<Probe, 'successThreshold' | 'failureThreshold'>

/** The verdict published before the first result. */
export function initialVerdict(kind: ProbeKind): ProbeVerdict {
  if (kind === 'liveness') return 'success'
  return kind === 'readiness' ? 'failure' : 'unknown'
}

/**
 * The initial state of a probe for a container that podd sees for the first time. `adopted` is the verdict that was
 * published before podd itself was restarted, so that a restart of podd turns no pod unready (as the kubelet since
 * 1.35).
 */
export function startProbeState(
  kind: ProbeKind,
  containerId: ContainerId,
  adopted?: ProbeVerdict,
): ProbeState {
  const verdict = adopted ?? initialVerdict(kind)
  return { containerId, verdict, last: undefined, run: 0, onHold: false }
}

/** Applies one result. The verdict changes only when the threshold of its kind is reached. */
export function applyFinding(
  kind: ProbeKind,
  thresholds: Thresholds,
  state: ProbeState,
  finding: ProbeFinding,
): ProbeState {
  if (finding === 'errored') return state
  const run = state.last === finding ? state.run + 1 : 1
  const needed = finding === 'success' ? thresholds.successThreshold : thresholds.failureThreshold
  if (run < needed) return { ...state, last: finding, run }
  const onHold = finding === 'failure' && kind !== 'readiness'
  return { ...state, verdict: finding, last: finding, run: onHold ? 0 : run, onHold }
}

/** In a terminating pod liveness and startup probes stop, with a passing verdict. */
export function applyEnding(kind: ProbeKind, state: ProbeState): ProbeState {
  return kind === 'readiness' ? state : { ...state, verdict: 'success' }
}

export interface ProbeFacts {
  readonly kind: ProbeKind
  readonly state: ProbeState
  /** The pod is terminating. */
  readonly ending: boolean
  /** The container has no startup probe, or that has passed. */
  readonly startedUp: boolean
  /** Monotonic milliseconds before which the initial delay forbids probing. */
  readonly notBeforeMs: number
  /** Monotonic milliseconds at which the probe's period comes round. */
  readonly tickMs: number
}

/** When to probe next, in monotonic milliseconds; undefined when nothing is to be probed. */
export function nextProbeMs(facts: ProbeFacts): number | undefined {
  const { kind, state } = facts
  if (state.onHold) return undefined
  if (kind === 'startup' ? state.verdict === 'success' : !facts.startedUp) return undefined
  if (facts.ending && kind !== 'readiness') return undefined
  return Math.max(facts.notBeforeMs, facts.tickMs)
}

/** Divides every period. */
const tickGridMs = 100

/**
 * The tick after one that was due at `dueMs`; ticks that passed while the probe ran are skipped. It is rounded up to a
 * tenth of a second: probes that are sent together cost half as much as ones that wake an idle host separately.
 */
export function followingTickMs(dueMs: number, periodMs: number, nowMs: number): number {
  return Math.max(Math.ceil((dueMs + periodMs) / tickGridMs) * tickGridMs, nowMs)
}
