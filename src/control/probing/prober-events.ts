import type { EventRecorder } from '../../pod/state/pod-event.ts'
import type { PodRef } from '../../pod/values/ids.ts'
import type { ProbeKind } from '../../decide/plan/pod-facts.ts'
import type { ProbeOutcome } from '../../probes/probe-outcome.ts'

/** As many events at once, and then one each so often: what Kubernetes' event clients let an object have. */
const burst = 25
const refillMs = 300_000
/** The longest message a Kubernetes event holds. */
const maxMessageChars = 1024

/** How many more events a probe may give rise to. */
export interface EventAllowance {
  readonly tokens: number
  readonly countedAtMs: number
}

export const fullAllowance: EventAllowance = { tokens: burst, countedAtMs: 0 }

/** The allowance after one event, or undefined when there is none left (client-go tools/record EventSourceObjectSpamFilter). */
export function spendAllowance(allowance: EventAllowance, nowMs: number): EventAllowance | undefined {
  const earned = (nowMs - allowance.countedAtMs) / refillMs
  const tokens = Math.min(burst, allowance.tokens + earned)
  return tokens < 1 ? undefined : { tokens: tokens - 1, countedAtMs: nowMs }
}

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

export interface ProbeEvent {
  readonly pod: PodRef
  readonly container: string
  readonly isWarningOnly: boolean
  readonly message: string
}

export function recordProbeEvent(recorder: EventRecorder, event: ProbeEvent): void {
  const { pod, container, message } = event
  const reason = event.isWarningOnly ? 'ProbeWarning' : 'Unhealthy'
  recorder.record({ pod, container, type: 'Warning', reason, message })
}
