/**
 * What probes mean: which verdict stands for a container, and when it is next probed. Follows the
 * kubelet's prober (pkg/kubelet/prober/worker.go, Kubernetes 1.36) with two differences, both for
 * the container's good: a new container starts with a clean count of runs, and the next probe is due
 * at a computed moment (start + initial delay) instead of at whatever tick comes after it.
 */
import type { ContainerId } from '../../pod/values/ids.ts'
import type { Probe } from '../../pod/schema/container-schema.ts'
import type { ProbeKind, ProbeVerdict } from './pod-facts.ts'

/** What one probe found; `errored` where the probing itself failed, which says nothing of the container. */
export type ProbeFinding = 'success' | 'failure' | 'errored'

export interface ProbeState {
  /** The container that `verdict` is about. */
  readonly containerId: ContainerId
  /** What is published. */
  readonly verdict: ProbeVerdict
  /** The last finding, and how many times in a row it came. */
  readonly last: 'success' | 'failure' | undefined
  readonly run: number
  /** Set by a liveness or startup failure: no more probes until there is a new container. */
  readonly onHold: boolean
}

type Thresholds = Pick<Probe, 'successThreshold' | 'failureThreshold'>

/** What is published before the first probe has said anything. */
export function initialVerdict(kind: ProbeKind): ProbeVerdict {
  if (kind === 'liveness') return 'success'
  return kind === 'readiness' ? 'failure' : 'unknown'
}

/**
 * The state of a probe whose container podd sees for the first time. `adopted` is the verdict that was
 * published before podd itself was restarted, so that a restart of podd turns no pod unready
 * (as the kubelet since 1.35).
 */
export function startProbeState(
  kind: ProbeKind,
  containerId: ContainerId,
  adopted?: ProbeVerdict,
): ProbeState {
  const verdict = adopted ?? initialVerdict(kind)
  return { containerId, verdict, last: undefined, run: 0, onHold: false }
}

/** Takes one finding in. The verdict changes only when the threshold of its kind is reached. */
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

/** A pod that is ending has its liveness and startup probes stopped, with a quiet verdict. */
export function applyEnding(kind: ProbeKind, state: ProbeState): ProbeState {
  return kind === 'readiness' ? state : { ...state, verdict: 'success' }
}

export interface ProbeFacts {
  readonly kind: ProbeKind
  readonly state: ProbeState
  /** The pod has been told to end. */
  readonly ending: boolean
  /** The container has no startup probe, or that has passed. */
  readonly startedUp: boolean
  /** Monotonic milliseconds before which the initial delay forbids probing. */
  readonly notBeforeMs: number
  /** Monotonic milliseconds at which the probe's period comes round. */
  readonly tickMs: number
}

/** When to probe next, in monotonic milliseconds; undefined when there is nothing to probe as things stand. */
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
 * The tick after one that was due at `dueMs`; ticks that passed while the probe ran are left out. It falls on a full tenth
 * of a second, and later rather than earlier: probes that are sent together cost half of what each costs that wakes an idle
 * host by itself.
 */
export function followingTickMs(dueMs: number, periodMs: number, nowMs: number): number {
  return Math.max(Math.ceil((dueMs + periodMs) / tickGridMs) * tickGridMs, nowMs)
}
